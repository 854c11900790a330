"""Tests of single rooms."""

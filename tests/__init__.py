"""Tests of Larkspur."""

"""Tests through the real chain."""

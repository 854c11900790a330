"""Tests that every filler of a port passes."""

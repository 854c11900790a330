"""The ways in and out."""

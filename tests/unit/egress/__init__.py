"""Requests over persistent connections."""

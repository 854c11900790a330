"""Destruction tests."""

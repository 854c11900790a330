"""Fixtures for the search providers."""

from tests.unit.tools.conftest import site

__all__ = ["site"]

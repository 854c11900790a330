"""Fixtures for the search providers."""

from tests.support.site_fixture import site

__all__ = ["site"]

"""Fixtures for the search providers."""

from tests.support.http_site import site

__all__ = ["site"]

"""Fixtures for the tools."""

from tests.support.http_site import site

__all__ = ["site"]

"""Fixtures for the tools."""

from tests.support.site_fixture import site

__all__ = ["site"]

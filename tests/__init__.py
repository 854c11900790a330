"""The tests, which mirror the source tree."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
"""The root of the repository."""

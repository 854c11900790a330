"""What every test may ask for. Keep it small: a fixture that one file needs stands in that file."""

import os
from pathlib import Path

import pytest

from internal.config.home import prepare


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder of the test's own."""
    return prepare(tmp_path / "home")


@pytest.fixture
def environ(home: Path) -> dict[str, str]:
    """The whole environment of a child process: of the machine's only the way to programs."""
    ours = os.environ  # noqa: TID251 - that way, and where a child reports its coverage
    kept = {name: ours[name] for name in ("PATH", "COVERAGE_PROCESS_CONFIG") if name in ours}
    return {**kept, "LANG": "C.UTF-8", "HOME": str(home.parent), "LARKSPUR_HOME": str(home)}

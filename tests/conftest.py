"""Fixtures of all tests. A fixture that only one file needs belongs into that file."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from internal.agent.domain.secrets import clear_secrets
from internal.config.home import prepare

if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # Started under nohup. Processes inherit an ignored signal, but not a handler: with one, this
    # process still survives a SIGHUP, and the programs that tests start get the default action.
    signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_secrets() -> Iterator[None]:
    """Forget the secrets that a test registers."""
    yield
    clear_secrets()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder of the test's own."""
    return prepare(tmp_path / "home")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working folder beside the home folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def environ(home: Path) -> dict[str, str]:
    """The whole environment of a child process; only PATH comes from the machine."""
    path = os.environ["PATH"]  # noqa: TID251 - needed to find programs
    return {
        "PATH": path,
        "LANG": "C.UTF-8",
        "HOME": str(home.parent),
        "LARKSPUR_HOME": str(home),
        "LARKSPUR_SANDBOX__PROVIDER": "native",  # most tests are about calls that people allow
    }

"""Fixtures of all tests. A fixture that only one file needs belongs into that file."""

import gc
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from coverage import Coverage
from hypothesis import settings

from internal.agent.domain.secrets import clear_secrets
from internal.config.home import prepare
from tests.support.property_examples import QUICK
from tests.support.traced_threads import trace_in_turn

trace_in_turn()

settings.register_profile(QUICK, max_examples=20, deadline=None)

if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # Started under nohup. Processes inherit an ignored signal, but not a handler: with one, this
    # process still survives a SIGHUP, and the programs that tests start get the default action.
    signal.signal(signal.SIGHUP, lambda *_: None)


# Lark's SDK leaves event loops and sockets to the garbage collector.
_LEAVES_GARBAGE = (
    "tests/integration/lark/",
    "tests/integration/lark_simulator/",
    "tests/integration/chat/",
    "tests/unit/channels/lark/",
    "tests/unit/channels/chat/",
    "tests/e2e/test_lark_process.py",
)
_UNRAISABLE = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the garbage of Lark's SDK cause no error, and leave the rows of long tables to CI."""
    rows = Counter[tuple[Path, str]]()
    for item in items:
        if item.nodeid.startswith(_LEAVES_GARBAGE):
            item.add_marker(_UNRAISABLE)
        if (first := item.get_closest_marker("first_rows")) is not None:
            function = (item.path, getattr(item, "originalname", item.name))
            if not item.get_closest_marker("slow"):
                rows[function] += 1
            if rows[function] > first.args[0]:
                item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Keep the collected tests, a large part of all objects, out of further garbage collections."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Store the coverage before xdist ends the worker, which it gives ten seconds to exit."""
    if (measured := Coverage.current()) is not None:
        measured.save()


@pytest.fixture(scope="module", autouse=True)
def _no_garbage_for_others(request: pytest.FixtureRequest) -> Iterator[None]:
    """Collect a module's garbage, so that no test of another module fails for it."""
    yield
    if request.node.nodeid.startswith(_LEAVES_GARBAGE):
        gc.collect()


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

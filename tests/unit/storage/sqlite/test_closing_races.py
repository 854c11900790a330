"""Closing while other threads submit: no error, and no byte in a file that is opened next.

The number of a closed descriptor is given to the next file. A late wake-up would write into it.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from internal.agent.domain.errors import StoreUnavailable
from internal.agent.store.database import Read
from internal.storage.sqlite import work_queue
from internal.storage.sqlite.database import SqliteDatabase
from internal.storage.sqlite.work_queue import WorkQueue

_PATIENCE_SECONDS = 30.0
_BLOCKED_SECONDS = 0.005
"""After this time a thread is taken to be blocked. If it is not, less is tried, nothing fails."""
_CANARIES = 4
"""Files opened after a close: more than the queue has descriptors."""


@pytest.fixture(autouse=True)
def _frequent_switches() -> Generator[None]:
    """Let threads take turns after almost every instruction."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def _open_canaries(folder: Path) -> list[int]:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return [os.open(folder / f"canary-{n}", flags, 0o600) for n in range(_CANARIES)]


def _foreign_bytes(folder: Path) -> int:
    return sum((folder / f"canary-{n}").stat().st_size for n in range(_CANARIES))


class _Paused:
    """Runs a function in a thread that pauses once, before the n-th line of the queue's module.

    A thread that neither pauses nor ends waits for the other thread.
    """

    def __init__(self, function: Callable[[], None], pause_at: int) -> None:
        self.error: BaseException | None = None
        self.lines = 0
        self._function, self._pause_at = function, pause_at
        self._stopped, self._resumed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the thread pauses, has ended, or has had time enough to be blocked."""
        self._stopped.wait(_BLOCKED_SECONDS)

    def resume(self) -> None:
        self._stopped.clear()
        self._resumed.set()

    def join(self) -> None:
        self._thread.join(_PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        sys.settrace(self._trace)
        try:
            self._function()
        except BaseException as error:  # noqa: BLE001 - reported
            self.error = error
        finally:
            sys.settrace(None)
            self._stopped.set()

    def _trace(self, frame: FrameType, event: str, _argument: object) -> Any:
        if frame.f_code.co_filename != work_queue.__file__:
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self._pause_at:
                self._stopped.set()
                self._resumed.wait(_PATIENCE_SECONDS)
        return self._trace


def _end_queue(folder: Path, taking_line: int, adding_line: int) -> tuple[int, int, list[str]]:
    """Let two threads end a queue, each paused once; return their lines and the errors found."""
    queue = WorkQueue(None)
    canaries: list[int] = []

    def take() -> None:
        """Close the queue at its end, as the writer thread does, and open files at once."""
        assert queue.get(_PATIENCE_SECONDS) is None
        queue.close()
        canaries.extend(_open_canaries(folder))

    taking = _Paused(take, taking_line)
    taking.wait()
    adding = _Paused(lambda: queue.put(None), adding_line)
    adding.wait()
    taking.resume()
    taking.wait()
    adding.resume()
    adding.join()
    taking.join()
    wrong = [repr(each.error) for each in (taking, adding) if each.error is not None]
    if found := _foreign_bytes(folder):
        wrong.append(f"{found} bytes in a file that is not of the queue")
    for each in canaries:
        os.close(each)
    return taking.lines, adding.lines, wrong


def test_no_wake_up_reaches_a_file_that_is_opened_after_the_close(tmp_path: Path) -> None:
    """Each thread is paused before each of its lines while the other one is at each of its own."""
    taking_lines, adding_lines, wrong = _end_queue(tmp_path, 0, 0)
    assert wrong == []
    for taking_line in range(1, taking_lines + 1):
        for adding_line in range(1, adding_lines + 1):
            _, _, wrong = _end_queue(tmp_path, taking_line, adding_line)
            assert wrong == [], f"before lines {taking_line} and {adding_line}"


async def _close_while_submitting(path: Path, canaries: Path) -> list[BaseException]:
    """Open a database and close it while another thread submits. Return unexpected errors."""
    database = await SqliteDatabase.open(path)
    futures, failures = [], list[BaseException]()
    started = threading.Event()

    def nothing() -> Read[None]:
        yield from ()

    def submit() -> None:
        try:
            started.set()
            while True:
                futures.append(database.submit(partial(nothing)))
        except StoreUnavailable:
            pass  # it is closed
        except BaseException as error:  # noqa: BLE001 - counted
            failures.append(error)

    thread = threading.Thread(target=submit)
    thread.start()
    assert started.wait(_PATIENCE_SECONDS), failures
    await database.close()
    opened = _open_canaries(canaries)
    thread.join()
    for each in opened:
        os.close(each)
    for future in futures:  # accepted work is resolved
        if error := future.exception(timeout=_PATIENCE_SECONDS):
            failures.append(error)
    return failures


_ROUNDS = 50
"""Forty tests make the 2,000 rounds: each has a time limit of its own, and coverage is slow."""


@pytest.mark.parametrize(
    "part", [pytest.param(n, marks=[pytest.mark.slow] if n else []) for n in range(40)]
)
def test_a_database_that_is_closed_while_a_thread_submits(tmp_path: Path, part: int) -> None:
    async def run() -> list[BaseException]:
        found: list[BaseException] = []
        for _ in range(_ROUNDS):
            found += await _close_while_submitting(tmp_path / "larkspur.db", tmp_path)
        return found

    assert (asyncio.run(run()), _foreign_bytes(tmp_path)) == ([], 0), part

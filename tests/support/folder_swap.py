"""Exchange of a folder or file with a link, at a given file operation of this process.

What a command does by luck or with inotify(7), a hook of the interpreter does at every operation in
turn: it runs before a file is opened, listed, changed or removed.
"""

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

_EVENTS = frozenset({"open", "os.scandir", "os.listdir", "os.chmod", "os.remove", "os.rmdir",
                     "os.rename", "os.mkdir", "os.symlink", "shutil.rmtree"})  # fmt: skip
_AT_WORKING_FOLDER = -100
_EXCHANGE = 2
_LIBC = ctypes.CDLL(None, use_errno=True)


class Operations:
    """Counts the file operations while it is used, and calls a function before each."""

    def __init__(self, before: Callable[[int], None]) -> None:
        self.count = 0
        self._before = before

    def on_event(self) -> None:
        """Call the function."""
        number, self.count = self.count, self.count + 1
        self._before(number)


_watching: list[Operations] = []


def _hook(event: str, _: tuple[object, ...]) -> None:
    if _watching and event in _EVENTS:
        watching = _watching.pop()  # its own operations are not counted
        watching.on_event()
        _watching.append(watching)


sys.addaudithook(_hook)  # stays; it costs nothing while nobody watches


@contextlib.contextmanager
def watch_operations(before: Callable[[int], None]) -> Iterator[Operations]:
    """Call a function with 0, 1, 2 … before each file operation."""
    _watching.append(Operations(before))
    try:
        yield _watching[0]
    finally:
        _watching.clear()


def exchange(one: Path, other: Path) -> None:
    """Exchange two entries at one moment, see renameat2(2)."""
    here, there = os.fsencode(one), os.fsencode(other)
    if _LIBC.renameat2(_AT_WORKING_FOLDER, here, _AT_WORKING_FOLDER, there, _EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def swap_everywhere(
    prepare: Callable[[], tuple[Path, Path]],
    use: Callable[[], object],
    check: Callable[[], None],
    *,
    stays: bool,
    errors: tuple[type[Exception], ...],
) -> int:
    """Run an operation once per file operation, with a part of its folder swapped for a link.

    Args:
        prepare: Creates the folder; returns the part and the link.
        use: The attacked operation.
        check: Raises if the attack succeeds.
        stays: Whether the link stays, or exists for one file operation only.
        errors: Exceptions that `use` may raise.

    Returns:
        The number of file operations.
    """
    prepare()
    with watch_operations(lambda _: None) as operations:
        use()
    for at in range(operations.count):
        part, link = prepare()
        moments = {at} if stays else {at, at + 1}

        def swap(
            number: int, moments: set[int] = moments, part: Path = part, link: Path = link
        ) -> None:
            if number in moments:
                with contextlib.suppress(FileNotFoundError):  # it is removed already
                    exchange(part, link)

        with watch_operations(swap), contextlib.suppress(*errors):
            use()
        check()
    return operations.count

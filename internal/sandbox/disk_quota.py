"""A bound of the disk space that the folders of one session take.

The kernel has quotas of users, not of folders that a user shares with others. So the files of a
session are counted before a command and from time to time while it runs.
"""

import asyncio
import os
import stat
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from internal.agent.app.background_task import run_to_completion
from internal.agent.domain.ids import SessionId
from internal.agent.ports.sandbox import (
    Sandbox,
    SandboxCapabilities,
    SandboxCommand,
    SandboxResult,
)

MAX_DEPTH = 200
"""Maximum nesting of folders; deeper ones count as too much."""
_COUNT_SECONDS = 5.0
_SHARE = 0.05
"""Counting takes at most this share of the time of a command."""
_MAX_SESSIONS = 256
_KILLED = -9
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK_BYTES = 512  # of st_blocks, on every file system


class _Count(NamedTuple):
    """The bytes of a session, when they were counted and how long it took, in seconds."""

    used: float
    at: float
    took: float

    @property
    def is_fresh(self) -> bool:
        return time.monotonic() - self.at < self.took / _SHARE


class QuotaSandbox:
    """A sandbox whose commands end when the folders of their session take too much disk space.

    While they do, commands write no files, so that they can delete some. Implements `Sandbox`.

    Args:
        sandbox: runs the commands.
        folders: returns the folders of a session; they need not exist.
        max_bytes: the most that the folders of one session may take.
    """

    def __init__(
        self, sandbox: Sandbox, folders: Callable[[SessionId], Iterable[Path]], max_bytes: int
    ) -> None:
        self._sandbox, self._folders, self._most = sandbox, folders, max_bytes
        self._counts: OrderedDict[SessionId, _Count] = OrderedDict()
        self.provider = sandbox.provider

    @property
    def capabilities(self) -> SandboxCapabilities:
        """The capabilities of the sandbox."""
        return self._sandbox.capabilities

    @capabilities.setter
    def capabilities(self, capabilities: SandboxCapabilities) -> None:
        self._sandbox.capabilities = capabilities

    async def run(
        self, command: SandboxCommand, on_output: Callable[[bytes], None], /
    ) -> SandboxResult:
        """Run a command; see the port."""
        if await self._is_used_up(command.session_id):
            result = await self._sandbox.run(structs.replace(command, writes=False), on_output)
            return structs.replace(result, exceeded=result.exceeded or "disk")
        running = asyncio.create_task(self._sandbox.run(command, on_output))
        try:
            while True:
                await asyncio.wait([running], timeout=self._interval(command.session_id))
                if running.done():
                    return running.result()
                if await self._is_used_up(command.session_id):
                    break
        finally:
            running.cancel()
            while not running.done():  # until its processes have ended
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({running})
        return SandboxResult(_KILLED, exceeded="disk")

    def _interval(self, session_id: SessionId) -> float:
        known = self._counts.get(session_id)
        return _COUNT_SECONDS if known is None else max(_COUNT_SECONDS, known.took / _SHARE)

    async def _is_used_up(self, session_id: SessionId) -> bool:
        known = self._counts.get(session_id)
        if known is None or not known.is_fresh:
            known = await run_to_completion(self._count, session_id)
            self._counts[session_id] = known
            self._counts.move_to_end(session_id)
            if len(self._counts) > _MAX_SESSIONS:
                self._counts.popitem(last=False)
        return known.used > self._most

    def _count(self, session_id: SessionId) -> _Count:
        began = time.monotonic()
        used = 0.0
        for folder in self._folders(session_id):
            used += count_bytes(folder, self._most - used)
            if used > self._most:
                break
        now = time.monotonic()
        return _Count(used, now, now - began)


def count_bytes(folder: Path, most: float) -> float:
    """Return the disk space used below a folder, more than `most` if it is nested too deeply.

    Symbolic links are never followed. Counting stops once the sum exceeds `most`. A file with
    several names counts once. Blocks.
    """
    try:
        opened = os.open(folder, _FOLDER_FLAGS)
    except OSError:
        return 0
    used = 0.0
    above: list[tuple[int, list[str]]] = [(opened, [])]
    try:
        used, above[0] = _read(opened)
        while above and used <= most:
            here, names = above[-1]
            if not names:
                os.close(here)
                above.pop()
                continue
            try:
                inner = os.open(names.pop(), _FOLDER_FLAGS, dir_fd=here)
            except OSError:  # gone, a link by now, or not to be read
                continue
            if len(above) > MAX_DEPTH:
                os.close(inner)
                return most + 1
            more, entry = _read(inner)
            used += more
            above.append(entry)
    finally:
        for descriptor, _ in above:
            os.close(descriptor)
    return used


def _read(folder: int) -> tuple[float, tuple[int, list[str]]]:
    """Return the bytes of the files in an open folder, and it with the names of its folders."""
    used, folders = 0.0, list[str]()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    folders.append(entry.name)
                used += status.st_blocks * _BLOCK_BYTES / max(status.st_nlink, 1)
    except OSError:
        pass
    return used, (folder, folders)

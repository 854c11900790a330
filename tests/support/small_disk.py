"""A small disk that tests fill, in a mount namespace of its own: no other process sees it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_NAMESPACE = ("unshare", "--map-root-user", "--mount", "--propagation", "private", "--kill-child")
_CHUNK = bytes(4096)


@dataclass(frozen=True)
class SmallDisk:
    """A disk at `path`, for processes that are started with `prefix`."""

    path: Path
    keeper: int

    @property
    def prefix(self) -> tuple[str, ...]:
        """The command that starts a process which sees the disk."""
        return ("nsenter", "--user", "--mount", "--preserve-credentials", f"--target={self.keeper}")

    @property
    def outside(self) -> Path:
        """The folder of the disk for processes that do not see it."""
        return Path(f"/proc/{self.keeper}/root{self.path}")

    def fill(self) -> None:
        """Write a file until the disk is full."""
        with (self.outside / "filling").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(_CHUNK)

    def free(self) -> None:
        """Delete the file that fills the disk."""
        (self.outside / "filling").unlink()

    async def make_read_only(self) -> None:
        """Allow no more writes. No process may have a file open for writing."""
        # without the other options of the disk: an ordinary user may not name its user again
        options = ("--options-source", "disable", "--options", "remount,ro")
        command = (*self.prefix, "mount", *options, str(self.path))
        process = await asyncio.create_subprocess_exec(*command)
        assert await process.wait() == 0


@asynccontextmanager
async def small_disk(path: Path, megabytes: int) -> AsyncGenerator[SmallDisk]:
    """Mount an empty disk at a new folder."""
    mount = f"mount -t tmpfs -o size={megabytes}m,mode=700 tmpfs '{path}'"
    script = f"mkdir '{path}' && {mount} && echo ready && exec cat"
    process = await asyncio.create_subprocess_exec(
        *(*_NAMESPACE, "sh", "-c", script),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"ready\n"
        yield SmallDisk(path, process.pid)
    finally:
        process.stdin.close()
        await process.wait()

"""Child processes of Linux whose end is a descriptor to wait for.

The event loop's own processes are forked: with the memory of a gateway that takes milliseconds, in
which nothing else happens. `subprocess` starts one without copying anything (vfork(2)).
"""

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO


class ChildProcess:
    """A child process in a session of its own. The caller must wait for its end.

    Args:
        argv: the full path of the program, and its arguments.
        streams: standard input, output and error; each a file, or its descriptor.
        environment: all its variables.
        descriptors: further descriptors that it inherits.

    Raises:
        OSError, ValueError: it cannot be started.
    """

    def __init__(
        self,
        argv: Sequence[str | bytes],
        *,
        streams: tuple[IO[bytes] | int, IO[bytes] | int, IO[bytes] | int],
        environment: Mapping[str, str],
        descriptors: Sequence[int] = (),
    ) -> None:
        stdin, stdout, stderr = streams
        self._process = subprocess.Popen(  # noqa: S603  # what the sandbox has composed
            argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd="/",
            env=environment,
            pass_fds=descriptors,
            start_new_session=True,
        )
        self._ended = asyncio.Event()
        try:
            self._descriptor = os.pidfd_open(self._process.pid)  # readable when it has ended
        except OSError:
            self._process.kill()
            self._process.wait()
            raise
        asyncio.get_running_loop().add_reader(self._descriptor, self._reap)

    @property
    def returncode(self) -> int | None:
        """The exit code, negative after a signal; None until the end."""
        return self._process.returncode

    def kill(self) -> None:
        """Kill it, if it has not ended."""
        self._process.kill()

    async def wait(self) -> None:
        """Wait for its end."""
        await self._ended.wait()

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._process.wait()
        self._ended.set()

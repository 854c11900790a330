"""What the agent asks of the place where commands run."""

from collections.abc import Callable
from typing import Protocol

import msgspec


class SandboxCommand(msgspec.Struct, frozen=True):
    """A program to run. `cwd` is absolute; `timeout_seconds` ends it with all its children."""

    argv: tuple[str, ...]
    cwd: str
    timeout_seconds: float
    stdin: bytes = b""


class SandboxResult(msgspec.Struct, frozen=True):
    """How a command ended. `exit_code` is negative after a signal; `timed_out`: we ended it."""

    exit_code: int
    timed_out: bool = False


class Sandbox(Protocol):
    """Runs commands in a process group of their own, in a fresh environment without keys."""

    provider: str
    isolated: bool

    async def run(
        self, command: SandboxCommand, on_output: Callable[[bytes], None], /
    ) -> SandboxResult:
        """Run a command; its stdout and stderr arrive joined, in order, in `on_output`.

        After it returns, raises or is cancelled no process of its group is left.

        Raises:
            ToolError: the program cannot be started.
        """
        ...

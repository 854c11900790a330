"""Background commands: commands that run beside the calls of their run."""

from typing import Protocol

import msgspec

from internal.agent.domain.ids import RunId, SessionId

COMMAND_ID_PREFIX = "bg-"
"""Prefix of the ids of background commands."""


class BackgroundCommand(msgspec.Struct, frozen=True):
    """A background command. Times are RFC 3339.

    A `kept` command ends with its session, others with their run. `ended` is None while it runs;
    `exit_code` is negative after a signal, and None if it has none. `output_bytes` is what it has
    written so far, `address` the first address on its machine that it printed, "" for none.
    """

    id: str
    session_id: SessionId
    run_id: RunId
    command: str
    started: str
    kept: bool
    ended: str | None = None
    exit_code: int | None = None
    output_bytes: int = 0
    address: str = ""


class PrintedOutput(msgspec.Struct, frozen=True):
    """The end of what a background command printed, as text for people.

    `missing_bytes` were printed before and are not in the text. `end` describes how it ended, ""
    while it runs.
    """

    command: BackgroundCommand
    text: str
    missing_bytes: int
    end: str


class BackgroundCommands(Protocol):
    """The background commands of this process."""

    def of_session(self, session_id: SessionId) -> list[BackgroundCommand]:
        """Return the commands of a session that run or ended lately, oldest first.

        Commands of earlier processes with the same data folder are included.
        """
        ...

    def read_last(self, session_id: SessionId, command_id: str) -> PrintedOutput:
        """Return the end of the output of a command, also after its end.

        Raises:
            NotFound: the session has no such command.
        """
        ...

    async def stop(self, session_id: SessionId, command_id: str) -> BackgroundCommand:
        """End a command and all that it started, and return it.

        Raises:
            NotFound: the session has no such command.
        """
        ...

    def request_end(self, run_id: RunId) -> None:
        """Begin to end the commands of a run that are not kept."""
        ...

    async def end_run(self, run_id: RunId) -> None:
        """End the commands of a run that are not kept."""
        ...

    async def end_session(self, session_id: SessionId) -> None:
        """End all commands of a session and forget them."""
        ...

"""Background commands: commands that run beside the calls of their run."""

from typing import Protocol

import msgspec

from internal.agent.domain.ids import RunId, SessionId

COMMAND_ID_PREFIX = "bg-"
"""How the ids of background commands begin."""


class BackgroundCommand(msgspec.Struct, frozen=True):
    """A background command. Times are RFC 3339.

    A `kept` command ends with its session, others with their run. `ended` is None while it runs;
    `exit_code` is negative after a signal, and None if it has none. `output_bytes` is what it has
    written so far.
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


class BackgroundCommands(Protocol):
    """The background commands of this process."""

    def of_session(self, session_id: SessionId) -> list[BackgroundCommand]:
        """Return the commands of a session that run or ended lately, oldest first."""
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

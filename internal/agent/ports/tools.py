"""What the agent asks of its tools."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.tasks import Attachment
from internal.agent.domain.tools import ToolSpec


@dataclass(frozen=True, slots=True)
class CallContext:
    """Where and for whom a call runs. `workspace` is an existing folder, absolute.

    `progress` takes output as it comes; it never blocks and may be called from any task of the
    call, not from another thread.
    """

    session_id: SessionId
    run_id: RunId
    call_id: str
    workspace: str
    progress: Callable[[str], None]


class ToolOutcome(msgspec.Struct, frozen=True):
    """What a call gave: text for the model, files worth keeping, facts for whoever watches."""

    text: str
    attachments: tuple[Attachment, ...] = ()
    metadata: dict[str, Any] = {}


class ToolSource(Protocol):
    """A set of tools. One is built in; others, such as MCP servers, look the same."""

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return what can be called, in a fixed order."""
        ...

    async def run(
        self, context: CallContext, name: str, arguments: dict[str, Any], /
    ) -> ToolOutcome:
        """Run one call. Cancelling it leaves no process and no half-written file behind.

        Raises:
            ToolError: it could not be done; the sentence is for the model.
        """
        ...

    async def preview(self, context: CallContext, name: str, arguments: dict[str, Any], /) -> str:
        """Say what a call would change in files if it ran now: a unified diff, or a note in [].

        Nothing is changed. It never raises and is bounded in time and size; "" for a call that
        changes no files or that nobody can foresee. File names and contents are as they are: escape
        before showing.
        """
        ...

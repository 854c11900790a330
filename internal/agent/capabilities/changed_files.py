"""Changed files: files of a workspace that a run makes, changes and deletes."""

from collections.abc import Sequence

from internal.agent.app.files.changed_files import ChangeRecorder
from internal.agent.app.runs.context import RunContext
from internal.agent.capabilities.capability import Capability, Contribution
from internal.agent.capabilities.endings import Ending
from internal.agent.domain.messages import ToolCall
from internal.agent.domain.react.turn import Turn


class ChangedFilesCapability(Capability):
    """Compares the workspace before calls with the workspace at the end or a pause."""

    name = "changed files"

    def __init__(self, changes: ChangeRecorder) -> None:
        self._changes = changes

    async def before_batch(self, run: RunContext, turn: Turn, calls: Sequence[ToolCall], /) -> None:
        """Take the state of the workspace before calls that may change files."""
        await self._changes.begin(run, turn.config, calls)

    async def ending(self, run: RunContext, turn: Turn | None, ending: Ending, /) -> Contribution:
        """Report the changes so far to people."""
        if turn is None or not ending.records_changes:
            return Contribution()
        return Contribution(await self._changes.record(run, turn.config.workspace))

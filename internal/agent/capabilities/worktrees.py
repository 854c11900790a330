"""Worktrees: folders of subtasks with a branch of their own."""

from internal.agent.app.files.artifacts import ArtifactRecorder
from internal.agent.app.runs.context import RunContext
from internal.agent.capabilities.capability import Capability, Contribution
from internal.agent.capabilities.endings import Ending
from internal.agent.domain.react.turn import Turn


class WorktreesCapability(Capability):
    """Records the changes of a subtask in its worktree."""

    name = "worktrees"

    def __init__(self, artifacts: ArtifactRecorder) -> None:
        self._artifacts = artifacts

    async def ending(self, run: RunContext, turn: Turn | None, ending: Ending, /) -> Contribution:
        """Record it when a run ends, also if it failed or was stopped."""
        if not ending.records_worktree or turn is None or not turn.config.workspace:
            return Contribution()
        found = await self._artifacts.record_changes(run, turn.config.workspace)
        return Contribution(found.events, found.also)

"""Archives: workspaces of sessions that several hosts execute, kept between runs."""

from internal.agent.app.hosts.workspace_keeper import WorkspaceKeeper
from internal.agent.app.runs.context import RunContext
from internal.agent.capabilities.capability import Capability, Contribution
from internal.agent.capabilities.endings import Ending
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import Task


class ArchivesCapability(Capability):
    """Restores a workspace before a run, and archives it with its ending."""

    name = "archives"

    def __init__(self, keeper: WorkspaceKeeper) -> None:
        self._keeper = keeper

    async def enter(self, run: RunContext, /) -> None:
        """Restore the files of the session from its newest archive."""
        await self._keeper.restore(run.task)

    async def ending(self, run: RunContext, _turn: Turn | None, ending: Ending, /) -> Contribution:
        """Archive the workspace; a stop does not wait for it."""
        if ending.saves_later:
            self._keeper.save_later(run.task)
            return Contribution()
        saved = await self._keeper.save(run.task)
        # the session leaves this host when the run does not execute any more
        return Contribution(saved.events, after=saved.also)

    async def fail(self, task: Task, /) -> None:
        """Archive the workspace later."""
        self._keeper.save_later(task)

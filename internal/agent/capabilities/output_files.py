"""Output files: files for people that a run left in its output folder and no result mentioned."""

from internal.agent.app.files.artifacts import ArtifactRecorder
from internal.agent.app.runs.context import RunContext
from internal.agent.capabilities.capability import Capability, Contribution
from internal.agent.capabilities.endings import Ending
from internal.agent.domain.react.turn import Turn


class OutputFilesCapability(Capability):
    """Records output files at the end of a run."""

    name = "output files"

    def __init__(self, artifacts: ArtifactRecorder) -> None:
        self._artifacts = artifacts

    async def ending(self, run: RunContext, turn: Turn | None, ending: Ending, /) -> Contribution:
        """Record them when a run ends for good."""
        if not ending.records_output or turn is None or not turn.config.workspace:
            return Contribution()
        found = await self._artifacts.record_output(run, turn.config.workspace, None)
        return Contribution(found.events, found.also)

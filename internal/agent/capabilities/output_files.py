"""Output files: files for people that a run left in its output folder and no result mentioned."""

import msgspec

from internal.agent.app.files.artifacts import ArtifactRecorder
from internal.agent.app.runs.context import RunContext
from internal.agent.capabilities.capability import Capability, Contribution
from internal.agent.capabilities.endings import Ending
from internal.agent.capabilities.run_draft import DraftChange, PromptScope, RunDraft
from internal.agent.domain.permissions.targets import PathTarget
from internal.agent.domain.react.turn import Turn
from internal.agent.ports.attachments import FileFolderResolver


class OutputFilesCapability(Capability):
    """Lets tools write output files, and records them at the end of a run."""

    name = "output files"

    def __init__(self, artifacts: ArtifactRecorder, folders: FileFolderResolver) -> None:
        self._artifacts, self._folders = artifacts, folders

    def contribute(self, scope: PromptScope, /) -> DraftChange:
        """Let tools write files for people unasked, in Larkspur's own folders."""
        if self._folders(scope.session_id, scope.workspace).are_together:
            return _allow_output
        return super().contribute(scope)

    async def ending(self, run: RunContext, turn: Turn | None, ending: Ending, /) -> Contribution:
        """Record them when a run ends for good."""
        if not ending.records_output or turn is None or not turn.config.workspace:
            return Contribution()
        found = await self._artifacts.record_output(run, turn.config.workspace, None)
        return Contribution(found.events, found.also)


def _allow_output(draft: RunDraft) -> RunDraft:
    rules = (
        f"{tool.name}(output/**)"
        for tool in draft.tools
        if tool.risk == "write" and any(isinstance(each, PathTarget) for each in tool.targets)
    )
    return msgspec.structs.replace(draft, rules=(*draft.rules, *rules))

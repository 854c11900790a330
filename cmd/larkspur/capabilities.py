"""The capabilities of this process: one line for each feature that takes part in runs."""

from typing import TYPE_CHECKING

from internal.agent.app.files.artifacts import ArtifactRecorder
from internal.agent.app.files.changed_files import ChangeRecorder
from internal.agent.app.runs.context import RunServices
from internal.agent.capabilities.archives import ArchivesCapability
from internal.agent.capabilities.background_commands import BackgroundCommandsCapability
from internal.agent.capabilities.changed_files import ChangedFilesCapability
from internal.agent.capabilities.hooks import HooksCapability
from internal.agent.capabilities.output_files import OutputFilesCapability
from internal.agent.capabilities.registry import Capabilities
from internal.agent.capabilities.subtasks import SubtasksCapability
from internal.agent.capabilities.titles import SessionTitler, TitlesCapability
from internal.agent.capabilities.worktrees import WorktreesCapability

if TYPE_CHECKING:
    from larkspur.services import Services


def make_capabilities(
    services: "Services",
    run_services: RunServices,
    artifacts: ArtifactRecorder,
    titler: SessionTitler | None,
) -> Capabilities:
    """Return the capabilities in the order in which they are asked."""
    changes = ChangeRecorder(
        services.database,
        services.stores,
        services.changes,
        folders=services.workspaces.file_folders,
    )
    return Capabilities(
        (
            # the outermost around a call: what it notes is stored with the result
            SubtasksCapability(services.stores, services.clock),
            HooksCapability(services.hooks, run_services),
            BackgroundCommandsCapability(services.commands),
            OutputFilesCapability(artifacts),
            WorktreesCapability(artifacts),
            ChangedFilesCapability(changes),
            ArchivesCapability(services.keeper),
            TitlesCapability(run_services, titler),
        )
    )

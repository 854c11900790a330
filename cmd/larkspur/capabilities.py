"""The capabilities of this process: one line for each feature that takes part in runs."""

from typing import TYPE_CHECKING

from internal.agent.app.files.artifacts import ArtifactRecorder
from internal.agent.app.files.changed_files import ChangeRecorder
from internal.agent.app.files.input_files import InputFiles
from internal.agent.app.files.request_images import RequestImages
from internal.agent.app.runs.context import RunServices
from internal.agent.capabilities.archives import ArchivesCapability
from internal.agent.capabilities.background_commands import BackgroundCommandsCapability
from internal.agent.capabilities.capability import Capability
from internal.agent.capabilities.changed_files import ChangedFilesCapability
from internal.agent.capabilities.hooks import HooksCapability
from internal.agent.capabilities.input_files import InputFilesCapability
from internal.agent.capabilities.instructions.capability import InstructionsCapability
from internal.agent.capabilities.mcp_tools import McpToolsCapability
from internal.agent.capabilities.output_files import OutputFilesCapability
from internal.agent.capabilities.pictures import PicturesCapability
from internal.agent.capabilities.registry import Capabilities
from internal.agent.capabilities.skills import SkillsCapability
from internal.agent.capabilities.subtasks import SubtasksCapability
from internal.agent.capabilities.titles import SessionTitler, TitlesCapability
from internal.agent.capabilities.worktrees import WorktreesCapability
from internal.agent.ports.documents import DocumentReader
from internal.skills.tool_source import ReviewedSkills

if TYPE_CHECKING:
    from larkspur.services import Services


def make_capabilities(
    services: "Services",
    run_services: RunServices,
    artifacts: ArtifactRecorder,
    *,
    documents: DocumentReader,
    titler: SessionTitler | None,
) -> Capabilities:
    """Return the capabilities in the order in which they are asked."""
    folders = services.workspaces.file_folders
    input_files = InputFiles(
        services.files,
        services.remote_files,
        documents=documents,
        audio=services.audio,
        folders=folders,
    )
    changes = ChangeRecorder(
        services.database,
        services.stores,
        services.changes,
        folders=folders,
    )
    return Capabilities(
        (
            # the outermost around a call: its notes are stored with the result
            SubtasksCapability(services.stores, services.clock),
            HooksCapability(services.hooks, run_services),
            BackgroundCommandsCapability(services.commands),
            *prompt_capabilities(services),
            InputFilesCapability(run_services, input_files),
            PicturesCapability(RequestImages(services.attachments), artifacts),
            OutputFilesCapability(artifacts, folders),
            WorktreesCapability(artifacts),
            ChangedFilesCapability(changes),
            ArchivesCapability(services.keeper),
            TitlesCapability(run_services, titler),
        )
    )


def prompt_capabilities(services: "Services") -> tuple[Capability, ...]:
    """Return the capabilities that are a part of every prompt, with or without a run."""
    return (
        InstructionsCapability(services.instruction_files, services.stores),
        SkillsCapability(ReviewedSkills(services.skills)),
        # after all that add tools or leave them out
        McpToolsCapability(services.settings.mcp.max_schema_share),
    )

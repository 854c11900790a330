"""The capabilities of this process: one line for each feature that takes part in runs."""

from typing import TYPE_CHECKING

from internal.agent.app.files.artifacts import ArtifactRecorder
from internal.agent.app.files.changed_files import ChangeRecorder
from internal.agent.app.runs.context import RunServices
from internal.agent.capabilities.archives import ArchivesCapability
from internal.agent.capabilities.background_commands import BackgroundCommandsCapability
from internal.agent.capabilities.capability import Capability
from internal.agent.capabilities.changed_files import ChangedFilesCapability
from internal.agent.capabilities.hooks import HooksCapability
from internal.agent.capabilities.instructions.capability import InstructionsCapability
from internal.agent.capabilities.mcp_tools import McpToolsCapability
from internal.agent.capabilities.output_files import OutputFilesCapability
from internal.agent.capabilities.registry import Capabilities
from internal.agent.capabilities.skills import SkillsCapability
from internal.agent.capabilities.worktrees import WorktreesCapability
from internal.skills.tool_source import ReviewedSkills

if TYPE_CHECKING:
    from larkspur.services import Services


def make_capabilities(
    services: "Services", run_services: RunServices, artifacts: ArtifactRecorder
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
            HooksCapability(services.hooks, run_services),
            BackgroundCommandsCapability(services.commands),
            *prompt_capabilities(services),
            OutputFilesCapability(artifacts),
            WorktreesCapability(artifacts),
            ChangedFilesCapability(changes),
            ArchivesCapability(services.keeper),
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

"""The prompt before a task in a folder: system prompt, instructions and tools."""

from collections.abc import Sequence
from pathlib import Path

from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.capabilities.instructions.capability import instruction_blocks
from internal.agent.capabilities.registry import Capabilities
from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.cli.application import FolderPrompt, InstructionItem
from internal.config.loader import Loaded
from internal.documents.reader import ChildDocumentReader
from internal.tools.instruction_files import WorkspaceInstructionFiles
from larkspur.capabilities import prompt_capabilities
from larkspur.file_storage import open_trust, open_workspaces, protected_paths
from larkspur.prompts import make_prompt_builder
from larkspur.services import (
    make_tools,
    open_sandbox_of,
    open_services,
    with_isolation,
)


def list_instructions(loaded: Loaded, folder: Path) -> list[InstructionItem]:
    """Return the instructions that apply to tasks in a folder, the most general first."""
    protected = protected_paths(loaded, open_workspaces(loaded))
    trust = open_trust(loaded)
    found = WorkspaceInstructionFiles(loaded.home, protected, trust).read(str(folder))
    return [
        InstructionItem(block.source, block.name, block.text, block.size)
        for block in instruction_blocks(found.texts)
    ]


async def make_prompt(
    loaded: Loaded, folder: Path, profile: str | None, skills: Sequence[str] | None
) -> FolderPrompt:
    """Return the prompt before a task of the owner in a folder.

    `profile` and `skills` belong to the task; None stands for the values of the settings and the
    profile.

    Raises:
        LarkspurError: the database or the sandbox cannot be used, or the profile or a skill does
            not exist.
    """
    async with (
        open_services(loaded, "terminal") as services,
        open_sandbox_of(loaded, services) as sandbox,
    ):
        options = TaskOptions(skills=None if skills is None else tuple(skills))
        defaults = with_isolation(services, sandbox)
        spec = build_run_spec(defaults, options, LOCAL_OWNER, profile)
        tools = make_tools(services, sandbox, ChildDocumentReader(sandbox))
        capabilities = Capabilities(prompt_capabilities(services))
        builder = make_prompt_builder(services, sandbox, tools, capabilities=capabilities)
        build = await builder.begin(spec, lambda: str(folder))
        prompt = await services.database.read(build)
    return FolderPrompt(
        prompt.system,
        prompt.instructions,
        [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in prompt.tools
        ],
        prompt.problems,
    )

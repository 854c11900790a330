"""What the model gets before a task in a folder: system prompt and instructions."""

import asyncio
from pathlib import Path

from internal.agent.app.prompt.instructions import instruction_blocks, instructions_text
from internal.agent.app.prompt.system_prompt import command_rules, system_prompt
from internal.channels.cli.application import FolderPrompt, InstructionItem
from internal.config.loader import Loaded
from internal.sandbox.workspaces import Workspaces
from internal.tools.instruction_files import WorkspaceInstructionFiles
from internal.tools.untrusted_files import UntrustedFiles
from larkspur.services import open_sandbox_of, open_services, protected_paths, with_isolation


def list_instructions(loaded: Loaded, folder: Path) -> list[InstructionItem]:
    """Return the instructions that apply to tasks in a folder, the most general first."""
    protected = protected_paths(loaded, Workspaces(loaded.home))
    untrusted = UntrustedFiles(loaded.home)
    found = WorkspaceInstructionFiles(loaded.home, protected, untrusted).read(str(folder))
    return [
        InstructionItem(block.source, block.name, block.text, block.size)
        for block in instruction_blocks(found.texts)
    ]


async def make_prompt(loaded: Loaded, folder: Path) -> FolderPrompt:
    """Return what the model gets before a task in a folder that sets no options.

    The instructions are those of a large context window: none is shortened for a small one.

    Raises:
        LarkspurError: the database or the sandbox cannot be used.
    """
    async with (
        open_services(loaded, "terminal") as services,
        open_sandbox_of(loaded, services) as sandbox,
    ):
        defaults = with_isolation(services, sandbox)
        system = system_prompt(
            defaults.profiles[defaults.profile],
            defaults.gates,
            str(folder),
            services.clock.now(),
            commands=command_rules(defaults.policy, sandbox.capabilities),
        )
        found = await asyncio.to_thread(services.instruction_files.read, str(folder))
    text = instructions_text(instruction_blocks(found.texts))
    return FolderPrompt(system, text, found.problems)

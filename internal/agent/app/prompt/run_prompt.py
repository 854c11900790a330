"""The prompt of a run: everything that the model gets besides the conversation."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from internal.agent.app.background_task import run_to_completion
from internal.agent.app.prompt.context_use import fixed_parts
from internal.agent.app.prompt.instructions import fitting_blocks, instructions_text
from internal.agent.app.prompt.system_prompt import command_rules, system_prompt
from internal.agent.domain.delegation.requests import DELEGATION_TOOLS
from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.react.context_window import message_budget
from internal.agent.domain.react.deferred_tools import MAX_TOOLS, list_servers, split_deferred
from internal.agent.domain.react.gates import CONTROL_SPECS, DEFERRED_TOOL_SPECS
from internal.agent.domain.tasks import RunSpec
from internal.agent.domain.text import text_tokens
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import ContextPart
from internal.agent.ports.instructions import FoundInstructions, InstructionFiles
from internal.agent.ports.llm import ModelBook
from internal.agent.ports.runtime import Clock
from internal.agent.ports.sandbox import SandboxCapabilities
from internal.agent.ports.skills import (
    LOAD_SKILL,
    NO_SKILLS,
    SKILL_TOOLS,
    SkillCatalogue,
    Skills,
)
from internal.agent.ports.tools import ToolSource, WithheldTool

_MAX_DIRECT_SECONDS = 0.001
_MAX_DIRECT_CHARS = 4_000
"""Instructions up to this length are prepared in the event loop, in microseconds."""


class RunPrompt(NamedTuple):
    """What the model gets before the conversation, in the folder `workspace` (an absolute path).

    `budget` are the tokens that are left for the conversation, `parts` those that the prompt takes.
    `problems` are sentences on the instruction files and skills that are not used, and on a model
    that the provider may not have, `withheld` the tools that exist and that the run does not have.
    `deferred` are tools that it has and that no request lists.
    """

    model: str
    workspace: str
    system: str
    instructions: str
    tools: tuple[ToolSpec, ...]
    budget: int
    parts: tuple[ContextPart, ...]
    problems: tuple[str, ...]
    withheld: tuple[WithheldTool, ...]
    deferred: tuple[ToolSpec, ...] = ()


class _PromptFiles(NamedTuple):
    workspace: str
    skills: SkillCatalogue
    instructions: FoundInstructions


class RunPromptBuilder:
    """Builds the prompts of runs.

    Args:
        tools: all tools but the control tools.
        book: the limits of the models.
        sandbox: what the sandbox of this process can do.
        instruction_files: reads the instructions of the owner and the folder.
        skills: the skills that a person has reviewed.
        clock: tells the date.
        max_schema_share: schemas of MCP tools that together take a larger share of the context
            window are deferred.
        max_tools: returns how many tools a request to a model may have.
    """

    def __init__(
        self,
        tools: ToolSource,
        book: ModelBook,
        *,
        sandbox: SandboxCapabilities,
        instruction_files: InstructionFiles,
        skills: Skills,
        clock: Clock,
        max_schema_share: float,
        max_tools: Callable[[str], int] = lambda _model: MAX_TOOLS,
        time_zone: str = "",
    ) -> None:
        self._tools = tools
        self._book = book
        self._sandbox = sandbox
        self._instruction_files = instruction_files
        self._skills = skills
        self._clock, self._time_zone = clock, time_zone
        self._max_schema_share = max_schema_share
        self._max_tools = max_tools
        self._read_seconds = math.inf
        """The processor time that the last reading of files took."""

    async def build(
        self,
        spec: RunSpec,
        find_workspace: Callable[[], str],
        *,
        chat_instructions: str = "",
        is_local: bool = False,
        in_group: bool = False,
    ) -> RunPrompt:
        """Return the prompt of a run. `in_group`: its task is from a group chat.

        `find_workspace` blocks, as reading the files does: it is called in a thread. With
        `is_local` all folders are on local disks: the files are read in the event loop as long as
        there are so few that a thread would take longer, because it competes with the event loop
        for Python's lock at each system call.

        Raises:
            InvalidRequest: a skill that the task names does not exist or is withheld.
            RequestError: what `find_workspace` raises.
        """
        if is_local and self._read_seconds < _MAX_DIRECT_SECONDS:
            files = self._read_files(spec, find_workspace)
        else:
            files = await run_to_completion(self._read_files, spec, find_workspace)
        workspace = files.workspace
        found = files.instructions.with_chat(chat_instructions).with_caller(spec.instructions)
        skills = files.skills
        known = self._known(
            with_skills=bool(skills.text), delegates=spec.delegates, in_group=in_group
        )
        granted = [tool for tool in known if spec.profile.grants(tool.name)]
        model = self._book.usable_model(spec.provider, spec.model)
        limits = self._book.limits(model)
        max_tokens = limits.context_window * self._max_schema_share
        max_tools = self._max_tools(model) - len(CONTROL_SPECS)
        direct, deferred = split_deferred(granted, max_tokens, max_tools)
        tools = (*direct, *CONTROL_SPECS, *(DEFERRED_TOOL_SPECS if deferred else ()))
        servers = list_servers(deferred)
        system = system_prompt(
            spec.profile,
            spec.gates,
            workspace,
            self._clock.now(),
            time_zone=spec.time_zone or self._time_zone,
            commands=self._command_rules(spec.policy, tools),
            skills=skills.text,
            servers=servers,
        )
        budget = message_budget(
            system,
            tools,
            context_window=limits.context_window,
            max_output_tokens=limits.max_output_tokens,
        )
        if sum(len(each.text) for each in found.texts) <= _MAX_DIRECT_CHARS:
            blocks = fitting_blocks(found.texts, budget)
        else:  # escapes in hostile texts take tens of milliseconds
            blocks = await asyncio.to_thread(fitting_blocks, found.texts, budget)
        instructions = instructions_text(blocks)
        problems = (*found.problems, *skills.problems, self._book.doubt(model))
        return RunPrompt(
            model=model,
            workspace=workspace,
            system=system,
            instructions=instructions,
            tools=tools,
            budget=budget - text_tokens(instructions),
            parts=fixed_parts(system, skills.text, blocks, tools, servers=servers),
            problems=tuple(filter(None, problems)),
            withheld=(
                *self._tools.withheld(),
                *(WithheldTool(one.name, "profile") for one in known if one not in granted),
            ),
            deferred=deferred,
        )

    def _read_files(self, spec: RunSpec, find_workspace: Callable[[], str]) -> "_PromptFiles":
        """Return the workspace, and what the files of skills and instructions say; blocks."""
        began = time.thread_time()
        workspace = find_workspace()
        instructions = self._instruction_files.read(workspace)
        skills = self._catalogue(spec, workspace)
        self._read_seconds = time.thread_time() - began
        return _PromptFiles(workspace, skills, instructions)

    def _catalogue(self, spec: RunSpec, workspace: str) -> SkillCatalogue:
        if not spec.profile.grants(LOAD_SKILL):
            return NO_SKILLS
        catalogue = self._skills.describe(workspace, spec.skills)
        if catalogue.problems and spec.skills not in (None, spec.profile.skills):
            raise InvalidRequest(
                " ".join(catalogue.problems),
                reason_code="skills_unusable",
                problems=" ".join(catalogue.problems),
            )  # the task names them
        return catalogue

    def _known(self, *, with_skills: bool, delegates: bool, in_group: bool) -> list[ToolSpec]:
        """Return the tools that are offered.

        Without skills those for skills are left out; so are those that create tasks, if the run
        may not, and those of group chats elsewhere.
        """
        left_out = frozenset[str]() if with_skills else SKILL_TOOLS
        left_out |= frozenset() if delegates else DELEGATION_TOOLS
        offered = (each for each in self._tools.specs() if in_group or not each.only_in_groups)
        return [tool for tool in offered if tool.name not in left_out]

    def _command_rules(self, policy: Policy, tools: Iterable[ToolSpec]) -> str:
        """Return the rules about commands if the run has tools for them."""
        runs_commands = any(tool.sandboxed and tool.risk == "exec" for tool in tools)
        return command_rules(policy, self._sandbox) if runs_commands else ""

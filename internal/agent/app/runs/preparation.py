"""Preparation: the first Turn of a run, with its history, prompt, tools and rules."""

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import zip_longest

import msgspec

from internal.agent.app.access import load_rules
from internal.agent.app.files.input_files import (
    InputFiles,
    MessageFile,
    file_parts,
    file_problems,
    stored_files,
)
from internal.agent.app.prompt.instructions import fitting_instructions
from internal.agent.app.prompt.system_prompt import command_rules, system_prompt
from internal.agent.app.runs.context import RunContext, RunServices
from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.events.types import (
    ContextSnapshot,
    DiagnosticError,
    Event,
    InputFilesFetched,
)
from internal.agent.domain.messages import Image, Message, Text
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.permissions.targets import PathTarget
from internal.agent.domain.react.context_window import (
    message_budget,
    message_tokens,
    text_tokens,
    tools_tokens,
)
from internal.agent.domain.react.gates import CONTROL_SPECS
from internal.agent.domain.react.history import History
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import Task
from internal.agent.domain.text import truncate_json
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.instructions import FoundInstructions, InstructionFiles
from internal.agent.ports.llm import ModelBook
from internal.agent.ports.sandbox import SandboxCapabilities
from internal.agent.ports.skills import LOAD_SKILL, NO_SKILLS, SKILL_TOOLS, Skills
from internal.agent.ports.tools import ToolSource
from internal.agent.store.history import MessageCache, read_history

HISTORY_SHARE = 0.5
"""Share of a request's messages for those of earlier runs of the session."""


class RunPreparer:
    """Builds the first Turn of a run."""

    def __init__(
        self,
        services: RunServices,
        tools: ToolSource,
        input_files: InputFiles,
        *,
        book: ModelBook,
        sandbox: SandboxCapabilities,
        instruction_files: InstructionFiles,
        skills: Skills,
    ) -> None:
        self._skills = skills
        self._instruction_files = instruction_files
        self._sandbox = sandbox
        self._database = services.database
        self._stores = services.stores
        self._clock = services.clock
        self._tools = tools
        self._input_files = input_files
        self._book = book
        self._messages = MessageCache()

    async def prepare(self, context: RunContext, workspace: str) -> tuple[Turn, list[Event]]:
        """Return a new Turn and what to report of it; `workspace` is an absolute path.

        Raises:
            LarkspurError: something that the task needs is missing, such as an attachment.
        """
        spec = context.task.spec
        catalogue, problems = NO_SKILLS
        if spec.profile.grants(LOAD_SKILL):
            describe = partial(self._skills.describe, workspace, spec.skills)
            catalogue, problems = await asyncio.to_thread(describe)
        if problems and spec.skills not in (None, spec.profile.skills):  # the task names them
            raise InvalidRequest(" ".join(problems))
        tools = (
            *(
                tool
                for tool in self._tools.specs()
                if spec.profile.grants(tool.name) and (catalogue or tool.name not in SKILL_TOOLS)
            ),
            *CONTROL_SPECS,
        )
        config = RunConfig(
            run_id=context.ids.run_id,
            system=system_prompt(
                spec.profile,
                spec.gates,
                workspace,
                self._clock.now(),
                commands=self._command_rules(spec.policy, tools),
                skills=catalogue,
            ),
            model=self._book.usable_model(spec.provider, spec.model),
            tools=tools,
            policy=spec.policy,
            limits=spec.limits,
            gates=spec.gates,
            workspace=workspace,
            people=spec.people,
            approvals=spec.approvals,
            plan_review=spec.plan_review,
            isolated=self._sandbox.isolated,
            skills=spec.skills,
        )
        found = await self._instructions(context.task, workspace)
        budget = self._budget(config)
        # escapes in hostile texts take tens of milliseconds
        instructions = await asyncio.to_thread(fitting_instructions, found.texts, budget)
        config = msgspec.structs.replace(config, instructions=instructions)
        history = await self._history(context.task, budget - text_tokens(instructions))
        task = context.task
        files = await self._input_files.add(task.session_id, workspace, task.attachments)
        fetched = await self._fetched(task, files)
        words = _earlier_words(history.messages)
        files, answer = self._input_files.explain_unheard(files, task.instruction, words)
        message = Message("user", (*file_parts(files), Text(task.model_text)))
        turn = Turn(config=config, messages=[message], task_index=0)
        turn.add_history(history)
        if _has_images(turn.messages[-1]):  # a task with an image is not reviewed (seed 000)
            turn.config = msgspec.structs.replace(config, plan_review="off")
        turn.allow_rules(output_rules(tools))
        turn.allow_rules(await load_rules(self._database, self._stores, context.task))
        if answer:
            turn.answer(answer)
        events = [
            *fetched,
            *file_problems(files),
            *_ignored((*found.problems, *problems)),
            _snapshot(turn),
        ]
        return turn, events

    def _command_rules(self, policy: Policy, tools: Iterable[ToolSpec]) -> str:
        """Return the rules about commands if the run has tools for them."""
        runs_commands = any(tool.sandboxed and tool.risk == "exec" for tool in tools)
        return command_rules(policy, self._sandbox) if runs_commands else ""

    async def _instructions(self, task: Task, workspace: str) -> FoundInstructions:
        """Return the texts of the owner, the chat and the folder."""
        found = await asyncio.to_thread(self._instruction_files.read, workspace)
        if not (chat := task.origin.chat):
            return found
        settings = await self._database.read(partial(self._stores.chats.get_settings, chat))
        return found.with_chat(settings.instructions)

    def _budget(self, config: RunConfig) -> int:
        """Return the tokens that the messages of a request may have."""
        limits = self._book.limits(config.model)
        return message_budget(
            config.system,
            config.tools,
            context_window=limits.context_window,
            max_output_tokens=limits.max_output_tokens,
        )

    async def _history(self, task: Task, budget: int) -> History:
        """Return what the model learns of the earlier runs of the session."""
        read = partial(
            read_history,
            self._stores.sessions,
            task.session_id,
            int(budget * HISTORY_SHARE),
            cached=self._messages.get(task.session_id),
        )
        history, newest_first = await self._database.read(read)
        self._messages.put(task.session_id, newest_first)
        return history

    async def _fetched(self, task: Task, files: Sequence[MessageFile]) -> list[Event]:
        """Store what was fetched with the task; another run of it does not fetch it again."""
        if all(each.is_stored for each in task.attachments):
            return []
        stored = (file.attachment for file in files[: len(task.attachments)])
        attachments = tuple(new or old for old, new in zip_longest(task.attachments, stored))
        await self._database.write(
            partial(self._stores.tasks.set_attachments, task.id, attachments)
        )
        return [InputFilesFetched(attachments=stored_files(files))]


def output_rules(tools: Iterable[ToolSpec]) -> list[str]:
    """Return the rules that let tools write to the session's folder for people unasked."""
    return [
        f"{tool.name}(output/**)"
        for tool in tools
        if tool.risk == "write" and any(isinstance(each, PathTarget) for each in tool.targets)
    ]


def _earlier_words(messages: Sequence[Message]) -> list[str]:
    """Return what people wrote, the newest first. The last text of a message follows its files."""
    texts = ([part.text for part in each.parts if isinstance(part, Text)] for each in messages)
    written = zip(messages, texts, strict=True)
    return [found[-1] for each, found in written if each.role == "user" and found][::-1]


def _ignored(problems: Iterable[str]) -> list[DiagnosticError]:
    """Return the event that names the files and skills which are not used, if there are any."""
    text = truncate_json("; ".join(problems))
    return [DiagnosticError(phase="prepare", error=text)] if text else []


def _has_images(message: Message) -> bool:
    return any(isinstance(part, Image) for part in message.parts)


def _snapshot(turn: Turn) -> ContextSnapshot:
    tokens = sum(message_tokens(message) for message in turn.messages)
    texts = (turn.config.system, turn.config.instructions)
    fixed = sum(map(text_tokens, texts)) + tools_tokens(turn.config.tools)
    digest = hashlib.sha256(msgspec.json.encode((*texts, turn.messages)))
    return ContextSnapshot(
        messages=len(turn.messages),
        tools=len(turn.config.tools),
        estimated_tokens=tokens + fixed,
        sha256=digest.hexdigest(),
    )

"""Preparation: the first Turn of a run, with its history, prompt, tools and rules."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import zip_longest
from typing import NamedTuple

import msgspec

from internal.agent.app.access import load_rules
from internal.agent.app.files.input_files import (
    InputFiles,
    MessageFile,
    file_parts,
    file_problems,
    stored_files,
)
from internal.agent.app.prompt.run_prompt import RunPromptBuilder
from internal.agent.app.runs.context import (
    RunContext,
    RunServices,
    create_workspace,
    workspace_of,
)
from internal.agent.app.subtasks.results import completed_event, load_results
from internal.agent.domain.delegation.reports import SubtaskResult
from internal.agent.domain.delegation.state import SubtaskState
from internal.agent.domain.events.types import (
    ContextSnapshot,
    DiagnosticError,
    Event,
    FilteredTool,
    InputFilesFetched,
    ToolFiltering,
)
from internal.agent.domain.messages import Image, Message, Text
from internal.agent.domain.permissions.targets import PathTarget
from internal.agent.domain.react.context_window import tools_tokens
from internal.agent.domain.react.history import History
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import Task
from internal.agent.domain.text import text_tokens, truncate_json
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.attachments import FileFolderResolver
from internal.agent.ports.tools import WithheldTool
from internal.agent.store.database import Read
from internal.agent.store.history import HistoryRead, MessageCache, SessionMessages, read_history

HISTORY_SHARE = 0.5
"""Share of a request's messages for those of earlier runs of the session."""
MAX_FILTERED = 50
"""How many of the tools that a run does not have are named."""


class _Stored(NamedTuple):
    """What the first Turn of a run takes from the database."""

    history: History
    known: SessionMessages
    rules: list[str]
    reported: list[SubtaskResult]
    has_steering: bool


class PreparedTurn(NamedTuple):
    """A new Turn, what to report of it, and whether messages wait for it."""

    turn: Turn
    events: list[Event]
    has_steering: bool


class RunPreparer:
    """Builds the first Turn of a run.

    Args:
        folders: where the files of a session are.
        messages: what is known of the sessions that were used last.
        isolated: whether commands are isolated.
        files_are_local: whether the folders of sessions and skills are on local disks.
    """

    def __init__(
        self,
        services: RunServices,
        prompts: RunPromptBuilder,
        input_files: InputFiles,
        *,
        folders: FileFolderResolver,
        messages: MessageCache,
        isolated: bool,
        files_are_local: bool,
    ) -> None:
        self._services = services
        self._database = services.database
        self._stores = services.stores
        self._prompts = prompts
        self._input_files = input_files
        self._folders = folders
        self._isolated = isolated
        self._messages = messages
        self._files_are_local = files_are_local

    async def prepare(self, context: RunContext) -> "PreparedTurn":
        """Return a new Turn.

        Raises:
            LarkspurError: something that the task needs is missing, such as an attachment.
        """
        task, spec = context.task, context.task.spec
        chat = await self._chat_instructions(task)
        find = partial(workspace_of, self._services, context)
        is_own = not spec.workspace and not spec.own_folder and context.run.subtask is None
        is_local = self._files_are_local and is_own
        prompt = await self._prompts.build(
            spec,
            find,
            chat_instructions=chat,
            is_local=is_local,
            in_group=not (task.origin.is_private or task.is_subtask),
        )
        workspace = prompt.workspace
        config = RunConfig(
            run_id=context.ids.run_id,
            system=prompt.system,
            model=prompt.model,
            tools=prompt.tools,
            policy=spec.policy,
            limits=spec.limits,
            gates=spec.gates,
            workspace=workspace,
            people=spec.people,
            approvals=spec.approvals,
            plan_review=spec.plan_review,
            isolated=self._isolated,
            instructions=prompt.instructions,
            skills=spec.skills,
            context=prompt.parts,
            deferred=prompt.deferred,
        )
        cached = self._messages.get(task.session_id)
        is_first = context.claimed is not None and context.claimed.opens_session
        read = partial(self._read_stored, context, prompt.budget, cached, is_first=is_first)
        is_short = is_first or bool(cached.newest_first)  # otherwise the session may be long
        stored = await self._database.read(read, is_short=is_short)
        if not task.is_subtask:
            self._messages.put(task.session_id, stored.known)
        history = stored.history
        if task.attachments:
            await create_workspace(self._services, context)
        files = await self._input_files.add(task.session_id, workspace, task.attachments)
        fetched = await self._fetched(task, files)
        files, answer = self._input_files.explain_unheard(
            files, task.instruction, lambda: _earlier_words(history.messages)
        )
        message = Message("user", (*file_parts(files), Text(task.model_text)))
        turn = Turn(
            config=config,
            messages=[message],
            task_index=0,
        )
        if task.reports:
            turn.remember(SubtaskState(frozenset(task.reports)))
        turn.add_history(history)
        if _has_images(turn.messages[-1]):  # a task with an image is not reviewed (seed 000)
            turn.config = msgspec.structs.replace(config, plan_review="off")
        if self._folders(task.session_id, workspace).are_together:
            turn.allow_rules(output_rules(config.tools))
        turn.allow_rules(stored.rules)
        if answer:
            turn.answer(answer)
        events = [
            *map(completed_event, stored.reported),
            *fetched,
            *file_problems(files),
            *_ignored(prompt.problems),
            *_filtered(prompt.withheld),
            _snapshot(task, turn),
        ]
        return PreparedTurn(turn, events, has_steering=stored.has_steering)

    async def _chat_instructions(self, task: Task) -> str:
        """Return the instructions of the chat that the task is from, "" without a chat."""
        if not (chat := task.origin.chat):
            return ""
        work = partial(self._stores.chats.get_settings, chat)
        settings = await self._database.read(work, is_short=True)
        return settings.instructions

    def _read_stored(
        self, context: RunContext, budget: int, cached: SessionMessages, *, is_first: bool
    ) -> Read["_Stored"]:
        """Return what is stored for a task, and what the model learns of the earlier runs."""
        task, (history, known) = context.task, HistoryRead(History([]))
        if not (task.is_subtask or is_first):
            history, known = yield from read_history(
                self._stores.sessions,
                task.session_id,
                int(budget * HISTORY_SHARE),
                known=cached,
            )
        rules = yield from load_rules(self._stores, task)
        reported = yield from load_results(self._stores, task.reports)
        steering = yield from self._stores.inbox.list_undelivered(context.run.id)
        return _Stored(history, known, rules, reported, has_steering=bool(steering))

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
    """Return the rules that let tools write files for people unasked, in Larkspur's own folders."""
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


def _filtered(withheld: Sequence[WithheldTool]) -> list[ToolFiltering]:
    """Return the event that names the tools which the run does not have, if there are any."""
    if not withheld:
        return []
    named = tuple(FilteredTool(each.name, each.reason) for each in withheld[:MAX_FILTERED])
    return [ToolFiltering(count=len(withheld), filtered=named)]


def _has_images(message: Message) -> bool:
    return any(isinstance(part, Image) for part in message.parts)


def _snapshot(task: Task, turn: Turn) -> ContextSnapshot:
    """Return the event about the initial context.

    The messages of earlier runs, which never change, enter the hash as a reference.
    """
    config, messages = turn.config, turn.messages[turn.task_index :]
    fixed = text_tokens(config.system) + tools_tokens(config.tools)
    hashed = (config.system, config.instructions, task.session_id, turn.history, messages)
    return ContextSnapshot(
        messages=len(turn.messages),
        tools=len(config.tools),
        estimated_tokens=turn.message_tokens + fixed,
        sha256=hashlib.sha256(msgspec.json.encode(hashed)).hexdigest(),
    )

"""Preparation: the first Turn of a run, with its history, prompt, tools and rules."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from internal.agent.app.access import load_rules
from internal.agent.app.prompt.run_prompt import RunPrompt, RunPromptBuilder
from internal.agent.app.runs.context import (
    RunContext,
    RunServices,
    workspace_of,
)
from internal.agent.app.subtasks.results import completed_event, load_results
from internal.agent.capabilities.capability import UserMessage
from internal.agent.capabilities.registry import Capabilities
from internal.agent.domain.delegation.reports import SubtaskResult
from internal.agent.domain.delegation.state import SubtaskState
from internal.agent.domain.events.types import (
    ContextSnapshot,
    DiagnosticError,
    Event,
    FilteredTool,
    ToolFiltering,
)
from internal.agent.domain.messages import Image, Message, Text
from internal.agent.domain.react.context_window import tools_tokens
from internal.agent.domain.react.history import History
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import Task
from internal.agent.domain.text import text_tokens, truncate_json
from internal.agent.ports.tools import WithheldTool
from internal.agent.store.database import Read
from internal.agent.store.history import HistoryRead, MessageCache, SessionMessages, read_history

HISTORY_SHARE = 0.5
"""Share of a request's messages for those of earlier runs of the session."""
MAX_FILTERED = 50
"""How many of the tools that a run does not have are named."""


class _Stored(NamedTuple):
    """The values that the first Turn of a run takes from the database."""

    prompt: RunPrompt
    history: History
    known: SessionMessages
    rules: list[str]
    reported: list[SubtaskResult]
    has_steering: bool


class PreparedTurn(NamedTuple):
    """A new Turn, the events of its preparation, and whether messages wait for it."""

    turn: Turn
    events: list[Event]
    has_steering: bool


class RunPreparer:
    """Builds the first Turn of a run.

    Args:
        messages: the messages of recently used sessions.
        isolated: whether commands are isolated.
        files_are_local: whether the folders of sessions and skills are on local disks.
    """

    def __init__(
        self,
        services: RunServices,
        prompts: RunPromptBuilder,
        *,
        capabilities: Capabilities,
        messages: MessageCache,
        isolated: bool,
        files_are_local: bool,
    ) -> None:
        self._services = services
        self._database = services.database
        self._stores = services.stores
        self._prompts = prompts
        self._capabilities = capabilities
        self._isolated = isolated
        self._messages = messages
        self._files_are_local = files_are_local

    async def prepare(self, context: RunContext) -> "PreparedTurn":
        """Return a new Turn.

        Raises:
            LarkspurError: something that the task needs is missing, such as an attachment.
        """
        task, spec = context.task, context.task.spec
        find = partial(workspace_of, self._services, context)
        is_own = not spec.workspace and not spec.own_folder and context.run.subtask is None
        is_local = self._files_are_local and is_own
        build = await self._prompts.begin(
            spec,
            find,
            session_id=task.session_id,
            chat=task.origin.chat,
            is_local=is_local,
            in_group=not (task.origin.is_private or task.is_subtask),
        )
        cached = self._messages.get(task.session_id)
        is_first = context.claimed is not None and context.claimed.opens_session
        read = partial(self._read_stored, context, build, cached, is_first=is_first)
        is_short = is_first or bool(cached.newest_first)  # otherwise the session may be long
        stored = await self._database.read(read, is_short=is_short)
        if not task.is_subtask:
            self._messages.put(task.session_id, stored.known)
        prompt, history = stored.prompt, stored.history
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
            context=prompt.parts,
            deferred=prompt.deferred,
        )
        sent = UserMessage(workspace, task.instruction, task.attachments, history)
        received = await self._capabilities.receive(context, sent)
        message = Message("user", (*received.parts, Text(task.model_text)))
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
        turn.allow_rules([*prompt.rules, *stored.rules])
        if received.answer:
            turn.answer(received.answer)
        events = [
            *map(completed_event, stored.reported),
            *received.events,
            *_ignored(prompt.problems),
            *_filtered(prompt.withheld),
            _snapshot(task, turn),
        ]
        return PreparedTurn(turn, events, has_steering=stored.has_steering)

    def _read_stored(
        self,
        context: RunContext,
        build: Callable[[], Read[RunPrompt]],
        cached: SessionMessages,
        *,
        is_first: bool,
    ) -> Read["_Stored"]:
        """Return the prompt, the stored values for a task, and the reports of earlier runs.

        It is one transaction. The prompt comes first: it decides how much history fits.
        """
        prompt = yield from build()
        task, (history, known) = context.task, HistoryRead(History([]))
        if not (task.is_subtask or is_first):
            history, known = yield from read_history(
                self._stores.sessions,
                task.session_id,
                int(prompt.budget * HISTORY_SHARE),
                known=cached,
            )
        rules = yield from load_rules(self._stores, task)
        reported = yield from load_results(self._stores, task.reports)
        steering = yield from self._stores.inbox.list_undelivered(context.run.id)
        return _Stored(prompt, history, known, rules, reported, has_steering=bool(steering))


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

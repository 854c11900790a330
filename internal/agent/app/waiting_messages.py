"""Waiting messages: messages of people that no model has read yet, and returned messages.

A message that steers a run waits for its next step, one that starts a task for the end of the run
before it. A run that is stopped or fails gives its undelivered messages back: they start nothing.
"""

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from internal.agent.app.edited_messages import replace_task_input, withdraw_edits
from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.queries import Queries
from internal.agent.app.runs.creation import (
    Submission,
    TaskIds,
    clean_instruction,
    load_task,
    message_content,
    new_task_ids,
)
from internal.agent.app.runs.finalization import RECALLED, end_idle_run, stop_outcome
from internal.agent.app.runs.undelivered import waiting_event
from internal.agent.domain.chats import edited_message_id
from internal.agent.domain.errors import Conflict, Forbidden, NotFound, RunStopped
from internal.agent.domain.events.envelope import EventRecord, RunIds, rfc3339
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.principals import Principal
from internal.agent.domain.tasks import Attachment, Run
from internal.agent.ports.runtime import Clock
from internal.agent.store.chats import StoredMessageState
from internal.agent.store.database import Database, Read, Write
from internal.agent.store.stores import Stores

WaitingFor = Literal["next_step", "next_task", "given_back"]
"""The next step of a run; the end of the run before its task; or nothing any more."""


class WaitingMessage(msgspec.Struct, frozen=True):
    """A message that no model has read. `number` identifies it; `text` is what the person wrote.

    `run_id` and `task_id` are those that it steers or starts, or that gave it back.
    """

    number: int
    waits_for: WaitingFor
    run_id: RunId
    task_id: TaskId
    text: str
    sender: str
    channel: str
    received: str
    attachments: tuple[Attachment, ...] = ()


class _Found(NamedTuple):
    state: StoredMessageState
    run: Run


class WaitingMessages:
    """Lists, edits and takes back messages that no model has read."""

    def __init__(
        self,
        database: Database,
        stores: Stores,
        *,
        queries: Queries,
        broadcaster: EventBroadcaster,
        clock: Clock,
    ) -> None:
        self._database = database
        self._stores = stores
        self._queries = queries
        self._broadcaster = broadcaster
        self._clock = clock

    async def list_of(
        self, session_id: SessionId, principal: Principal
    ) -> Sequence[WaitingMessage]:
        """Return the messages of a session that wait or were given back, in order of arrival.

        Raises:
            NotFound: the session does not exist or belongs to another person.
        """
        await self._queries.session(session_id, principal)
        work = partial(self._stores.inbox.list_waiting, session_id)
        return [_view(each) for each in await self._database.read(work)]

    async def edit(
        self, session_id: SessionId, number: int, text: str, principal: Principal
    ) -> WaitingMessage:
        """Replace the text of a message that waits.

        Raises:
            InvalidRequest: the text is empty or too long.
            NotFound: the session has no such message.
            Forbidden: another person wrote it.
            Conflict: it does not wait any more, or is edited in its chat; the text says which.
        """
        await self._queries.session(session_id, principal)
        text = clean_instruction(text)
        now = rfc3339(self._clock.now())
        work = partial(self._edit, session_id, number, text, principal=principal, now=now)
        message, events = await self._database.write(work)
        self._broadcaster.publish(events)
        return message

    async def take_back(self, session_id: SessionId, number: int, principal: Principal) -> None:
        """Take a message back, so that no model reads it; one that was given back is settled.

        Taking it back again changes nothing.

        Raises:
            NotFound: the session has no such message.
            Forbidden: another person wrote it.
            Conflict: a model has read it, or its task has begun.
        """
        await self._queries.session(session_id, principal)
        now = rfc3339(self._clock.now())
        take = partial(self._take_back, session_id, number, principal=principal)
        work = partial(take, ids=new_task_ids(), now=now)
        self._broadcaster.publish(await self._database.write(work))

    def _find(self, session_id: SessionId, number: int, principal: Principal) -> Read[_Found]:
        state = yield from self._stores.inbox.get_waiting(session_id, number)
        run = None if state is None else (yield from self._stores.runs.get(state.run_id))
        if state is None or run is None:
            raise NotFound(
                f"This session has no message {number}.",
                reason_code="no_waiting_message",
                number=number,
            )
        if state.principal != principal.id and not principal.may("owner"):
            raise Forbidden("Another person wrote this message.", reason_code="message_of_another")
        return _Found(state, run)

    def _edit(
        self, session_id: SessionId, number: int, text: str, *, principal: Principal, now: str
    ) -> Write[tuple[WaitingMessage, list[EventRecord]]]:
        state, run = yield from self._find(session_id, number, principal)
        if state.status in {"returned", "withdrawn"}:
            raise Conflict(
                "This message was given back: send it again.", reason_code="message_given_back"
            )
        _check_waits(state, run)
        if state.chat_id:
            raise Conflict(
                "This message was written in a chat: edit it there.", reason_code="message_of_chat"
            )
        if state.text != text:
            inbox = self._stores.inbox
            if not state.steer:
                task = yield from load_task(self._stores, run)
                new = Submission(text, task.spec, state.channel, attachments=task.attachments)
                yield from replace_task_input(self._stores, run, task, new, now=now)
            content = message_content(text, attachments=state.attachments)
            yield from inbox.replace_text(number, content)
        edited = state._replace(text=text)
        return _view(edited), [waiting_event(RunIds.of(run), number, "edited", text=text, now=now)]

    def _take_back(
        self, session_id: SessionId, number: int, *, principal: Principal, ids: TaskIds, now: str
    ) -> Write[list[EventRecord]]:
        state, run = yield from self._find(session_id, number, principal)
        if state.status == "withdrawn":
            return []
        events: list[EventRecord] = []
        if state.status != "returned":
            _check_waits(state, run)
            yield from withdraw_edits(self._stores, run.id, [edited_message_id(state.message_id)])
            if not state.steer:
                task = yield from load_task(self._stores, run)
                stopped = RunStopped(principal.id, state.channel, RECALLED, principal.name)
                end = partial(end_idle_run, self._stores, run, task)
                events = yield from end(outcome=stop_outcome(stopped), ids=ids, now=now)
        yield from self._stores.inbox.take_back(number)
        taken = waiting_event(RunIds.of(run), number, "taken_back", text=state.text, now=now)
        return [*events, taken]


def _check_waits(state: StoredMessageState, run: Run) -> None:
    """Check that no model has read a message.

    Raises:
        Conflict: one has.
    """
    if state.status != "assigned" or (state.steer and run.stop is not None):
        raise Conflict("The model has read this message already.", reason_code="message_read")
    if not state.steer and not (run.status == "queued" and not run.started):
        raise Conflict("The task of this message has begun.", reason_code="message_began")


def _view(state: StoredMessageState) -> WaitingMessage:
    waits_for: WaitingFor = "next_step" if state.steer else "next_task"
    if state.status == "returned":
        waits_for = "given_back"
    return WaitingMessage(
        state.number,
        waits_for,
        state.run_id,
        state.task_id,
        state.text,
        state.principal,
        state.channel,
        state.received,
        state.attachments,
    )

"""Edits of messages: the task that waits is replaced, or its run is told."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from internal.agent.app.files.session_files import use_attachments
from internal.agent.app.runs.creation import Submission, load_task, with_content
from internal.agent.app.subtasks.endings import wake_run
from internal.agent.domain.chats import InboundMessage, edited_message_id
from internal.agent.domain.errors import Conflict
from internal.agent.domain.events.envelope import EventRecord, RunIds
from internal.agent.domain.events.types import InputEdited
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import ENDED, Run, Task
from internal.agent.domain.text import first_line, truncate_json
from internal.agent.store.chats import InboxState
from internal.agent.store.database import Write
from internal.agent.store.stores import Stores

EditResult = Literal["replaced", "told", "unchanged", "too late"]
"""The waiting message was replaced; its run is told; it says the same; or its run has ended."""


class MessageEdit(msgspec.Struct, frozen=True):
    """An edit of a message that was assigned to a run.

    `row` is the accepted inbox row of the edit. `submission` is the message as it is now, `notice`
    the notice for a run that works on it.
    """

    row: InboundMessage
    submission: Submission
    notice: Submission


def edit_message(
    stores: Stores, edit: MessageEdit, *, now: str
) -> Write[tuple[EditResult, RunId | None, list[EventRecord]]]:
    """Replace a message that waits for its run, or tell the run that it was edited.

    The row of the edit is handled with it. Returns the run, None if it has ended.
    """
    row = edit.row
    original = edited_message_id(row.message_id)
    state = yield from stores.inbox.get_state(row.channel, row.app, original)
    run = None if state is None else (yield from stores.runs.get(state.run_id))
    if state is None or run is None or run.status in ENDED or run.stop is not None:
        yield from stores.inbox.dismiss(row.channel, row.app, row.message_id)
        return "too late", None, []
    is_unread = state.status == "assigned" and state.steer
    if is_unread and not state.other_messages:
        return (yield from _replace_steering(stores, state, run, edit))
    if (yield from stores.inbox.get_text(state.number)) == edit.submission.instruction:
        yield from stores.inbox.dismiss(row.channel, row.app, row.message_id)
        return "unchanged", run.id, []
    task = yield from load_task(stores, run)
    if run.status == "queued" and not run.started and not state.other_messages:
        try:
            return (yield from _replace_task(stores, state, run, task=task, edit=edit, now=now))
        except Conflict:  # it has begun meanwhile
            pass
    yield from withdraw_edits(stores, run.id, [original])
    message = with_content(row, edit.notice)
    yield from stores.inbox.assign(message, run.session_id, run.id, steer=True)
    if not is_unread:  # else it contains the texts of other messages that the run has not read
        yield from stores.inbox.replace_content(state.number, with_content(row, edit.submission))
    return "told", run.id, (yield from wake_run(stores, run.id, now=now))


def withdraw_edits(stores: Stores, run_id: RunId, message_ids: Iterable[str]) -> Write[None]:
    """Withdraw the edits of messages that a run has not read."""
    edited = frozenset(message_ids)
    for message in (yield from stores.inbox.list_undelivered(run_id)):
        target = edited_message_id(message.message_id)
        if target != message.message_id and target in edited:
            yield from stores.inbox.withdraw(message.number)


def _replace_steering(
    stores: Stores, state: InboxState, run: Run, edit: MessageEdit
) -> Write[tuple[EditResult, RunId | None, list[EventRecord]]]:
    yield from stores.inbox.replace_content(state.number, with_content(edit.row, edit.submission))
    yield from stores.inbox.dismiss(edit.row.channel, edit.row.app, edit.row.message_id)
    return "replaced", run.id, []


def _replace_task(
    stores: Stores, state: InboxState, run: Run, *, task: Task, edit: MessageEdit, now: str
) -> Write[tuple[EditResult, RunId | None, list[EventRecord]]]:
    """Replace the input of a task whose run has not begun.

    Raises:
        Conflict: the run has begun; nothing was changed.
    """
    events = yield from replace_task_input(stores, run, task, edit.submission, now=now)
    row = edit.row
    yield from stores.inbox.replace_content(state.number, with_content(row, edit.submission))
    yield from stores.inbox.dismiss(row.channel, row.app, row.message_id)
    return "replaced", run.id, events


def replace_task_input(
    stores: Stores, run: Run, task: Task, new: Submission, *, now: str
) -> Write[list[EventRecord]]:
    """Replace the input of a task whose run has not begun, and return the events.

    Raises:
        Conflict: the run has begun; nothing was changed.
    """
    edited = InputEdited(
        task=truncate_json(new.instruction),
        attachments=tuple(each for each in new.attachments if each.is_stored),
    )
    # first, because it holds the run: no process can start it before this is committed
    events = yield from stores.events.append_idle(RunIds.of(run), [edited], now)
    yield from stores.tasks.replace_input(
        task.id, new.instruction, prompt=new.prompt, attachments=new.attachments
    )
    yield from use_attachments(stores, new.attachments, run.session_id, task.origin.principal)
    yield from stores.sessions.replace_first_title(
        run.session_id, first_line(task.instruction), first_line(new.instruction)
    )
    return events

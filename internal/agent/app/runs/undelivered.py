"""Undelivered messages: steering that a run has not read when it is stopped or fails."""

from typing import Literal

from internal.agent.domain.chats import OutgoingMessage, edited_message_id, given_back_key
from internal.agent.domain.delegation.reports import TASK_ENDS_CHANNEL, TASKS_CHANNEL
from internal.agent.domain.events.envelope import EventRecord, RunIds, wrap_event
from internal.agent.domain.events.types import InputWaiting
from internal.agent.domain.tasks import Run
from internal.agent.domain.text import truncate_json
from internal.agent.store.chats import Steering
from internal.agent.store.database import Write
from internal.agent.store.stores import Stores


def give_back(
    stores: Stores, run: Run, *, now: str, silent: bool = False
) -> Write[list[EventRecord]]:
    """Give the undelivered messages of people back: they are stored as such, and start nothing.

    Those that came from a chat are told there, unless the end of the run is `silent`.
    """
    events: list[EventRecord] = []
    for message in (yield from stores.inbox.list_undelivered(run.id)):
        if message.channel in {TASKS_CHANNEL, TASK_ENDS_CHANNEL}:
            yield from stores.inbox.withdraw(message.number)
            continue
        yield from stores.inbox.give_back(message.number)
        number, text = message.number, message.text
        events.append(waiting_event(RunIds.of(run), number, "given_back", text=text, now=now))
        if message.chat_id and not silent:
            yield from stores.outbox.add(_notice(message), now)
    return events


def waiting_event(
    ids: RunIds,
    number: int,
    state: Literal["waiting", "edited", "taken_back", "given_back"],
    *,
    text: str,
    now: str,
) -> EventRecord:
    """Return the event with the outcome of a message; the list of them is stored."""
    event = InputWaiting(number=number, state=state, task=truncate_json(text))
    return EventRecord.ephemeral(wrap_event(ids, event, now, None))


def _notice(message: Steering) -> OutgoingMessage:
    return OutgoingMessage(
        key=given_back_key(message.number),
        channel=message.channel,
        app=message.app,
        chat_id=message.chat_id,
        reply_to=edited_message_id(message.message_id),
        body=message.text,
    )

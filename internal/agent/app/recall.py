"""Recalling: a person takes a message back before it was answered."""

from typing import Literal, NamedTuple

from internal.agent.app.runs.creation import FreshIds
from internal.agent.app.runs.finalization import RECALLED, cancel_resting, next_task
from internal.agent.domain.errors import RunStopped
from internal.agent.domain.events.record import EventRecord
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import ENDED, Channel, StopRequest
from internal.agent.store.database import Write
from internal.agent.store.inbox import InboxState
from internal.agent.store.stores import Stores

Recalled = Literal["unqueued", "unsaid", "stopped", "nothing"]
"""It was not taken in; it was not told to its run; its run ends; or it is too late."""


class Recall(NamedTuple):
    """Which message is taken back, and by whom."""

    channel: Channel
    app: str
    message_id: str
    by: str


def recall_message(
    stores: Stores, recall: Recall, fresh: FreshIds, now: str
) -> Write[tuple[Recalled, RunId | None, list[EventRecord]]]:
    """Undo what a message began, as far as it is not answered.

    What others said to a run that ends so becomes the next task. Returns the running run that is
    asked to stop, None when none is.
    """
    place = yield from stores.inbox.get_state(recall.channel, recall.app, recall.message_id)
    if place is None or place.status == "handled":
        return "nothing", None, []
    if place.status == "accepted":
        yield from stores.inbox.dismiss(recall.channel, recall.app, recall.message_id)
        return "unqueued", None, []
    if place.steer and place.status == "taken":
        yield from stores.inbox.withdraw(place.number)
        return "unsaid", None, []
    return (yield from _end_run(stores, place, recall, fresh, now))


def _end_run(
    stores: Stores, place: InboxState, recall: Recall, fresh: FreshIds, now: str
) -> Write[tuple[Recalled, RunId | None, list[EventRecord]]]:
    """End the run that a message alone has begun."""
    run = yield from stores.runs.get(place.run_id)
    task = None if run is None else (yield from stores.tasks.get(run.task_id))
    if run is None or task is None or run.status in ENDED or place.steer or place.other_messages:
        return "nothing", None, []
    shown = yield from next_task(stores, run, task, fresh, now)
    if run.status == "running":
        request = StopRequest(recall.by, recall.channel, RECALLED)
        yield from stores.runs.request_stop(run.id, request)
        return "stopped", run.id, shown
    stopped = RunStopped(recall.by, recall.channel, RECALLED)
    shown += yield from cancel_resting(stores, run, task, stopped, fresh, now)
    return "stopped", None, shown

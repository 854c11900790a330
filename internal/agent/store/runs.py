"""What the agent asks of the store of runs: leases, fences, checkpoints."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.tasks import Run, Status, StopReason, StopRequest
from internal.agent.domain.usage import Usage
from internal.agent.store.database import Batch, Read, Row, Statement, Write
from internal.agent.store.encoding import plain, to_json


class CheckpointDelta(NamedTuple):
    """A checkpoint: the Turn without its messages, and those that the turn log lacks.

    `offset` counts the messages before `messages`; both are JSON.
    """

    head: bytes
    offset: int
    messages: tuple[bytes, ...]


class RunEnd(NamedTuple):
    """How a run ended, as its row keeps it. `cost` in US dollars when known."""

    status: Status
    stop_reason: StopReason
    usage: Usage
    cost: float | None
    answer: str
    error: str
    ended: str


_usage = msgspec.json.Decoder(Usage)
_stop = msgspec.json.Decoder(StopRequest)
_STOP, _TERMINAL, _USAGE = map(Run.__struct_fields__.index, ("stop", "terminal", "usage"))


class RunStore:
    """Fills `Runs`."""

    def add(self, run: Run, created: str, lease_until: str = "", /) -> Write[None]:
        """Insert a queued run at the end of its lane; a terminal's has a lease from the start."""
        rows = yield Statement("take_arrival")
        yield Statement(
            "insert_run",
            (
                run.id,
                run.task_id,
                run.session_id,
                run.lane,
                rows[0][0],
                run.fence,
                run.last_seq,
                run.attempt,
                run.owner,
                lease_until,
                int(run.terminal),
                run.parent_run_id,
                created,
                to_json(run.usage),
            ),
        )

    def get(self, run_id: RunId, /) -> Read[Run | None]:
        """Return a run."""
        rows = yield Statement("run", (run_id,))
        return _first(rows)

    def get_by_task(self, task_id: TaskId, /) -> Read[Run | None]:
        """Return the newest run of a task."""
        rows = yield Statement("run_of_task", (task_id,))
        return _first(rows)

    def claim(self, run_id: RunId, owner: str, lease_until: str, now: str, /) -> Write[Run | None]:
        """Take a queued run whose lane is free: it is running, its fence and attempt are raised.

        A lane is free when none of its runs is running and none is before this one in the order
        of (priority, arrival). Returns None when the run may not be taken now. A terminal's run is
        taken by its owner alone.
        """
        rows = yield Statement("claim_run", (run_id, owner, lease_until, now))
        return _first(rows)

    def renew_leases(self, owner: str, lease_until: str, /) -> Write[None]:
        """Move the lease of an owner's runs: the running ones, and a terminal's queued ones."""
        yield Statement("renew_leases", (owner, lease_until))

    def list_ready(self, owner: str, limit: int, /) -> Read[list[Run]]:
        """Return queued runs that `owner` could claim now, in the order in which they are to start.

        The first of each free lane; without those that belong to another terminal.
        """
        rows = yield Statement("ready_runs", (owner, limit))
        return _runs(rows)

    def list_expired(self, now: str, /) -> Read[list[Run]]:
        """Return the runs whose lease is over: running ones, and a terminal's queued ones."""
        rows = yield Statement("lost_runs", (now,))
        return _runs(rows)

    def list_owned(self, owner: str, /) -> Read[list[Run]]:
        """Return the running runs of an owner."""
        rows = yield Statement("owned_runs", (owner,))
        return _runs(rows)

    def get_active(self, session_id: SessionId, /) -> Read[Run | None]:
        """Return the session's running run, else the queued one that is to start first."""
        rows: list[Row] = []
        for status in ("running", "queued"):
            rows = rows or (yield Statement("first_run_of_session", (session_id, status)))
        return _first(rows)

    def list_unfinished(self, session_id: SessionId, /) -> Read[list[Run]]:
        """Return the session's runs that have not ended, oldest first."""
        rows = yield Statement("open_runs_of_session", (session_id,))
        return _runs(rows)

    def requeue(self, run_id: RunId, fence: int, /) -> Write[bool]:
        """Put a running run back, before the others of its lane; False when fenced."""
        return (yield from self._rest(run_id, fence, "queued"))

    def pause(self, run_id: RunId, fence: int, /) -> Write[bool]:
        """Set a running run to waiting, its lane is free; False when fenced."""
        return (yield from self._rest(run_id, fence, "waiting"))

    def queue_waiting(self, run_id: RunId, now: str, /) -> Write[bool]:
        """Queue a waiting run, before the others of its lane; False when it does not wait.

        A terminal's run whose terminal is gone belongs to nobody from now on.
        """
        rows = yield Statement("wake_run", (run_id, now))
        return bool(rows)

    def release(self, run_id: RunId, owner: str, /) -> Write[bool]:
        """Let anybody take a terminal's queued or waiting run; "" whoever owns it."""
        rows = yield Statement("release_run", (run_id, owner))
        return bool(rows)

    def adopt(self, run_id: RunId, owner: str, lease_until: str, /) -> Write[bool]:
        """Make a queued run that belongs to nobody a terminal's; False when it may not be."""
        rows = yield Statement("adopt_run", (run_id, owner, lease_until))
        return bool(rows)

    def request_stop(self, run_id: RunId, stop: StopRequest, /) -> Write[bool]:
        """Ask a running run to stop; the first request stays. False when it is not running."""
        rows = yield Statement("request_stop", (run_id, to_json(stop)))
        return bool(rows)

    def list_stop_requests(self, owner: str, /) -> Read[list[tuple[RunId, StopRequest]]]:
        """Return the stop requests for an owner's running runs."""
        rows = yield Statement("stop_requests", (owner,))
        return [(run_id, _stop.decode(stop)) for run_id, stop in rows]

    def end(self, run_id: RunId, fence: int, end: RunEnd, /) -> Write[bool]:
        """Store how a run ended; False when it is not at this fence or has ended already.

        The checkpoint is forgotten, except that of a failed run: a person may still resume it.
        """
        rows = yield Statement(
            "end_run",
            (
                run_id,
                fence,
                end.status,
                end.stop_reason,
                to_json(end.usage),
                end.cost,
                plain(end.answer),
                plain(end.error),
                end.ended,
            ),
        )
        if rows and end.status != "failed":
            yield Statement("delete_checkpoint", (run_id,))
            yield Statement("cut_turn_log", (run_id, 0))
        return bool(rows)

    def save_checkpoint(self, run_id: RunId, point: CheckpointDelta, /) -> Write[None]:
        """Store the newest checkpoint: messages at `point.offset` and later are replaced.

        With a new message the run got further: its attempts count from this one again. A resume
        and the begin of a tool store a checkpoint too, but one that may end as the last one did.
        """
        yield Statement("store_checkpoint", (run_id, point.head.decode()))
        if point.messages:
            yield Statement("note_progress", (run_id,))
        yield Statement("cut_turn_log", (run_id, point.offset))
        yield Batch(
            "insert_turn_message",
            [
                (run_id, number, message.decode())
                for number, message in enumerate(point.messages, point.offset)
            ],
        )

    def get_checkpoint(self, run_id: RunId, /) -> Read[tuple[bytes, list[bytes]] | None]:
        """Return the checkpoint's head and all its messages."""
        rows = yield Statement("checkpoint", (run_id,))
        if not rows:
            return None
        messages = yield Statement("turn_messages", (run_id,))
        return rows[0][0].encode(), [message.encode() for (message,) in messages]

    def _rest(self, run_id: RunId, fence: int, status: Status) -> Write[bool]:
        rows = yield Statement("rest_run", (run_id, fence, status))
        return bool(rows)


def _first(rows: list[Row]) -> Run | None:
    return _run(rows[0]) if rows else None


def _runs(rows: Iterable[Row]) -> list[Run]:
    return [_run(row) for row in rows]


def _run(row: Row) -> Run:
    values = list(row)
    if values[_STOP] is not None:
        values[_STOP] = _stop.decode(values[_STOP])
    values[_TERMINAL] = bool(values[_TERMINAL])
    values[_USAGE] = _usage.decode(values[_USAGE])
    return Run(*values)

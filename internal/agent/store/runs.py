"""Runs with their lanes, fences, checkpoints and results; processes and leaderships."""

from typing import Literal, NamedTuple

import msgspec

from internal.agent.domain.delegation.subtask import Subtask
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.tasks import NO_SHARE, Run, Share, Status, StopReason, StopRequest
from internal.agent.domain.usage import Usage
from internal.agent.store.checkpoints import (
    CHECKPOINT_VERSION,
    CheckpointDelta,
    StoredCheckpoint,
)
from internal.agent.store.database import Batch, Read, Row, Statement, Write
from internal.agent.store.encoding import storable, to_json


class RunEnd(NamedTuple):
    """The result of a run. `cost` is in US dollars, as far as prices are known; None if none is."""

    status: Status
    stop_reason: StopReason
    usage: Usage
    cost: float | None
    answer: str
    error: str
    ended: str


class HeldRun(NamedTuple):
    """A run that a process executes or has reserved, and the end of its lease (RFC 3339)."""

    run: Run
    lease_until: str


_usage = msgspec.json.Decoder(Usage)
_stop_request = msgspec.json.Decoder(StopRequest)
_subtask = msgspec.json.Decoder(Subtask)
_STOP, _TERMINAL, _USAGE, _SUBTASK, _STARTED, _ENDED = map(
    Run.__struct_fields__.index, ("stop", "terminal", "usage", "subtask", "started", "ended")
)
_PEOPLE, _SUBTASKS = 1, 2
"""The priorities of new runs; a resumed run has 0."""


class RunStore:
    """Runs. The first queued run of each lane, by (priority, arrival), may be claimed.

    A lane is free when none of its runs is running. A claim raises the run's fence; later writes
    of an earlier claim have no effect.
    """

    def add(
        self,
        run: Run,
        created: str,
        lease_until: str = "",
        /,
        *,
        blocked_by: int = 0,
        share: Share = NO_SHARE,
    ) -> Write[None]:
        """Insert a queued run at the end of its lane.

        `lease_until` is given for a run that a terminal owns from the start. `blocked_by` is the
        number of unfinished tasks that it depends on.
        """
        place = run.subtask
        yield Statement(
            "insert_run",
            (
                run.id,
                run.task_id,
                run.session_id,
                run.lane,
                run.fence,
                run.last_seq,
                run.attempt,
                run.owner,
                lease_until,
                int(run.terminal),
                run.parent_run_id,
                created,
                to_json(run.usage),
                _PEOPLE if place is None else _SUBTASKS,
                None if place is None else to_json(place),
                None if place is None else place.root_task_id,
                None if place is None else f"{run.parent_run_id}:{place.call_id}",
                0 if place is None else place.max_parallel,
                blocked_by,
                *share,
            ),
        )
        yield Statement("count_arrival")

    def get(self, run_id: RunId, /) -> Read[Run | None]:
        """Return a run."""
        rows = yield Statement("run", (run_id,))
        return _first(rows)

    def get_by_task(self, task_id: TaskId, /) -> Read[Run | None]:
        """Return the newest run of a task."""
        rows = yield Statement("run_of_task", (task_id,))
        return _first(rows)

    def get_active(self, session_id: SessionId, /) -> Read[Run | None]:
        """Return the run of a session that a message may join.

        That is the running one, else one that waits for its subtasks, else the queued one that
        starts next. Runs with a lane of their own are in the background.
        """
        rows = yield Statement("active_run_of_session", (session_id,))
        return _first(rows)

    def list_unfinished(self, session_id: SessionId, /) -> Read[list[Run]]:
        """Return the session's queued, running and waiting runs, oldest first."""
        rows = yield Statement("unfinished_runs_of_session", (session_id,))
        return _runs(rows)

    def list_ready(
        self, owner: str, now: str, limit: int, /, *, only_own: bool = False, host: str = ""
    ) -> Read[list[Run]]:
        """Return the first queued run of each free lane, oldest first.

        Runs are left out if they are not due yet, exceed their person's number of concurrent runs,
        belong to another terminal, or if their process died; see `get_ready_crashed`. `only_own`:
        only runs of the terminal `owner`. `host`: only runs of sessions whose files this host has
        or can get; "" for all.
        """
        rows = yield Statement("ready_runs", (owner, now, limit, int(only_own), host))
        return _runs(rows)

    def list_next(self, owner: str, now: str, limit: int, /, *, host: str = "") -> Read[list[Run]]:
        """Return for each person the run of `list_ready` that is to start first.

        The person with the fewest running runs comes first, then the person whose last run started
        earliest.
        """
        rows = yield Statement("next_runs_of_people", (owner, now, limit, host))
        return _runs(rows)

    def count_new(self, person: str, /) -> Read[int]:
        """Return how many runs of a person have not started yet, without subtasks."""
        rows = yield Statement("count_new_runs_of_person", (person,))
        return int(rows[0][0])

    def get_place(self, run_id: RunId, /) -> Read[int | None]:
        """Return the place of a queued run in the order of starts, from 1.

        None if it is not queued, or another run of its lane comes first.
        """
        rows = yield Statement("place_in_queue", (run_id,))
        return int(rows[0][0]) if rows else None

    def list_queued(self, limit: int, /) -> Read[set[RunId]]:
        """Return queued runs that no terminal owns."""
        return {run_id for (run_id,) in (yield Statement("queued_runs", (limit,)))}

    def get_ready_crashed(
        self, owner: str, now: str, /, *, host: str = "", except_crashes: int = 0
    ) -> Read[Run | None]:
        """Return the run to start next among the runs whose process died while it executed them.

        Runs with `except_crashes` are left out. `host` is as for `list_ready`.
        """
        rows = yield Statement("ready_crashed_runs", (owner, now, host, except_crashes))
        return _first(rows)

    def list_owned(self, owner: str, /) -> Read[list[Run]]:
        """Return the running runs of an owner."""
        rows = yield Statement("owned_runs", (owner,))
        return _runs(rows)

    def list_held(self) -> Read[list[HeldRun]]:
        """Return the running runs, and a terminal's queued ones."""
        rows = yield Statement("held_runs")
        return [HeldRun(read_run(row[:-1]), row[-1]) for row in rows]

    def claim(
        self,
        run_id: RunId,
        owner: str,
        *,
        lease_until: str,
        now: str,
        host: str = "",
        reserve: int = 0,
    ) -> Write[Run | None]:
        """Set a queued run to running for an owner and raise its fence and attempt.

        `reserve` so many sequence numbers for its next events: the last ones up to `last_seq`.

        Returns None when the run is not the first of a free lane, is not due yet, belongs to the
        terminal of another owner, or to a session whose files are not on this `host`, "" for
        wherever they are, or when as many runs of its person are running as may.
        """
        rows = yield Statement("claim_run", (run_id, owner, lease_until, now, host, reserve))
        return _first(rows)

    def renew_leases(self, owner: str, lease_until: str, /) -> Write[set[RunId]]:
        """Extend the leases of an owner's unfinished runs and return them."""
        rows = yield Statement("renew_leases", (owner, lease_until))
        return {run_id for (run_id,) in rows}

    def requeue(self, run_id: RunId, fence: int, /) -> Write[bool]:
        """Set a running run to queued, ahead of its lane. False when its fence is another one.

        Its process gave it up in good order, so this start does not count as an attempt.
        """
        rows = yield Statement("release_lane", (run_id, fence, "queued", None, None))
        return bool(rows)

    def requeue_failed(
        self, run_id: RunId, fence: int, /, *, not_before: str, crashed: bool
    ) -> Write[bool]:
        """Set a running run whose start failed to queued, to be claimed from `not_before` on.

        `crashed`: the process died. False when the fence of the run is another one.
        """
        values = (run_id, fence, int(crashed), not_before)
        rows = yield Statement("requeue_failed_run", values)
        return bool(rows)

    def record_progress(self, run_id: RunId, /) -> Write[None]:
        """Reset the attempts and crashes of a running run."""
        yield Statement("reset_attempts", (run_id,))

    def list_failed_after_crashes(self, crashes: int, limit: int, /) -> Read[list[Run]]:
        """Return failed runs whose process died at least `crashes` times, the newest first.

        Subtasks are left out: the run above them decides how to continue.
        """
        return _runs((yield Statement("runs_failed_after_crashes", (crashes, limit))))

    def forget_crashes(self, run_id: RunId, /) -> Write[bool]:
        """Reset the crashes of a failed run. False when it has none."""
        return bool((yield Statement("forget_crashes", (run_id,))))

    def reset_used_seconds(self, run_id: RunId, /) -> Write[None]:
        """Give a run its whole time limit again."""
        yield Statement("reset_used_seconds", (run_id,))

    def pause(self, run_id: RunId, fence: int, /) -> Write[bool]:
        """Set a running run to waiting, which frees its lane. False when its fence is another."""
        reason: StopReason = "await_user_input"
        rows = yield Statement("release_lane", (run_id, fence, "waiting", reason, None))
        return bool(rows)

    def await_tasks(self, run_id: RunId, fence: int, until: str, /) -> Write[bool]:
        """Set a running run to waiting for tasks, at most until an instant (RFC 3339).

        False when its fence is another one.
        """
        reason: StopReason = "await_tasks"
        rows = yield Statement("release_lane", (run_id, fence, "waiting", reason, until))
        return bool(rows)

    def queue_waiting(self, run_id: RunId, now: str, /) -> Write[bool]:
        """Set a waiting run to queued, ahead of its lane. False when it is not waiting.

        Its attempts and crashes are reset. A terminal's run whose lease has expired loses its
        owner.
        """
        rows = yield Statement("queue_waiting_run", (run_id, now))
        return bool(rows)

    def release(self, run_id: RunId, owner: str, /) -> Write[bool]:
        """Remove the owner of a terminal's queued or waiting run.

        False when it is in another state or has another owner. `owner` "" matches any owner.
        """
        rows = yield Statement("release_run", (run_id, owner))
        return bool(rows)

    def adopt(self, run_id: RunId, owner: str, lease_until: str, /) -> Write[bool]:
        """Give a queued run without an owner to a terminal. False when it is not such a run."""
        rows = yield Statement("adopt_run", (run_id, owner, lease_until))
        return bool(rows)

    def request_stop(self, run_id: RunId, stop: StopRequest, /) -> Write[bool]:
        """Store a stop request for a running run; an earlier one stays. False if not running."""
        rows = yield Statement("request_stop", (run_id, to_json(stop)))
        return bool(rows)

    def list_stop_requests(self, owner: str, /) -> Read[list[tuple[RunId, StopRequest]]]:
        """Return the stop requests for an owner's running runs."""
        rows = yield Statement("stop_requests", (owner,))
        return [(run_id, read_stop(stop)) for run_id, stop in rows]

    def end(self, run_id: RunId, fence: int, end: RunEnd, /) -> Write[bool]:
        """Store the result of a run. False when it has ended or its fence differs.

        Deletes the checkpoint, unless the run failed: a task that resumes it continues there.
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
                storable(end.answer),
                storable(end.error),
                end.ended,
            ),
        )
        if rows and end.status != "failed":
            yield Statement("delete_checkpoint", (run_id,))
            yield Statement("truncate_turn_log", (run_id, 0))
        return bool(rows)

    def save_checkpoint(self, run_id: RunId, delta: CheckpointDelta, /) -> Write[None]:
        """Store the newest checkpoint. Messages from number `delta.offset` on are replaced."""
        yield Statement(
            "upsert_checkpoint",
            (run_id, CHECKPOINT_VERSION, delta.task_index, delta.turn.decode()),
        )
        yield Statement("truncate_turn_log", (run_id, delta.offset))
        yield Batch(
            "insert_turn_message",
            [
                (run_id, number, message.decode())
                for number, message in enumerate(delta.messages, delta.offset)
            ],
        )

    def get_checkpoint(self, run_id: RunId, /) -> Read[StoredCheckpoint | None]:
        """Return the newest checkpoint of a run."""
        rows = yield Statement("checkpoint", (run_id,))
        if not rows:
            return None
        version, task_index, turn = rows[0]
        messages = yield Statement("turn_messages", (run_id,))
        return StoredCheckpoint(
            version, task_index, turn.encode(), [message.encode() for (message,) in messages]
        )


def _first(rows: list[Row]) -> Run | None:
    return read_run(rows[0]) if rows else None


def _runs(rows: list[Row]) -> list[Run]:
    return [read_run(row) for row in rows]


def read_run(row: Row) -> Run:
    """Return the run of a row with the columns that all statements about runs return."""
    values = list(row)
    if values[_STOP] is not None:
        values[_STOP] = read_stop(values[_STOP])
    values[_TERMINAL] = bool(values[_TERMINAL])
    values[_STARTED], values[_ENDED] = values[_STARTED] or "", values[_ENDED] or ""
    if values[_SUBTASK] is not None:
        values[_SUBTASK] = _subtask.decode(values[_SUBTASK])
    values[_USAGE] = read_usage(values[_USAGE])
    return Run(*values)


def read_usage(stored: str) -> Usage:
    """Return stored tokens. A damaged row must not hide all other runs: it has none."""
    try:
        return _usage.decode(stored)
    except msgspec.MsgspecError:
        return Usage()


def read_stop(stored: str) -> StopRequest:
    """Return a stored stop request; of a damaged one, that somebody asked for a stop."""
    try:
        return _stop_request.decode(stored)
    except msgspec.MsgspecError:
        return StopRequest(by="unknown", via="unknown")


Role = Literal["gateway", "channels", "worker"]


class ProcessEntry(NamedTuple):
    """A process that serves the database.

    Attributes:
        owner: the process, as `ProcessIdentity` writes it.
        role: a gateway has channels and executes runs; others do only one of them.
        host: the name of its host, else of its machine.
        pid: its number there.
        version: of Larkspur.
        started: RFC 3339.
        lease_until: the end of its lease (RFC 3339).
    """

    owner: str
    role: Role
    host: str
    pid: int
    version: str
    started: str
    lease_until: str


class ProcessStore:
    """The gateways and workers of the database."""

    def list_all(self) -> Read[list[ProcessEntry]]:
        """Return all processes in the order of their start."""
        rows = yield Statement("processes")
        return sorted(map(ProcessEntry._make, rows), key=lambda entry: (entry.started, entry.owner))

    def count_runs(self) -> Read[dict[str, int]]:
        """Return how many runs each owner executes, terminals included."""
        return dict((yield Statement("active_runs_of_owners")))

    def add(self, entry: ProcessEntry, /) -> Write[None]:
        """Insert a process, or renew its lease."""
        yield Statement("insert_process", entry)

    def renew(self, owner: str, lease_until: str, /) -> Write[None]:
        """Extend the lease of a process. No effect if it is not in the list."""
        yield Statement("renew_process", (owner, lease_until))

    def remove(self, owner: str, /) -> Write[None]:
        """Remove a process."""
        yield Statement("delete_process", (owner,))

    def remove_ended(self, entry: ProcessEntry, /) -> Write[None]:
        """Remove a process, unless it has renewed its lease since the entry was read."""
        yield Statement("delete_ended_process", (entry.owner, entry.lease_until))


class LeaderFence(NamedTuple):
    """A claim of a leadership. It is valid while the leadership has this fence."""

    name: str
    fence: int


class LeadershipRow(NamedTuple):
    """The leading process ("" without one) and the end of its lease (RFC 3339)."""

    owner: str
    fence: int
    lease_until: str


class LeadershipStore:
    """Leaderships. Every change of the leader raises the fence."""

    def get(self, name: str, /) -> Read[LeadershipRow | None]:
        """Return a leadership, None if it was never claimed."""
        rows = yield Statement("leadership", (name,))
        return LeadershipRow._make(rows[0]) if rows else None

    def list_leaders(self) -> Read[list[tuple[str, str]]]:
        """Return the names of leaderships with their owners, in order."""
        rows = yield Statement("leaders")
        return sorted((name, owner) for name, owner in rows)

    def claim(
        self, name: str, owner: str, lease_until: str, seen: LeadershipRow | None, /
    ) -> Write[LeaderFence | None]:
        """Make an owner the leader. None if the leadership is not any more as it was `seen`."""
        fence, lease = (0, "") if seen is None else (seen.fence, seen.lease_until)
        rows = yield Statement("claim_leadership", (name, owner, lease_until, fence, lease))
        return LeaderFence(name, rows[0][0]) if rows else None

    def renew(self, owner: str, lease_until: str, /) -> Write[None]:
        """Extend all leases of an owner."""
        yield Statement("renew_leaderships", (owner, lease_until))

    def release(self, held: LeaderFence, /) -> Write[None]:
        """Give up a leadership. No effect if another owner has claimed it."""
        yield Statement("release_leadership", held)

    def release_all(self) -> Write[None]:
        """Make all leaderships free, for a caller who knows that their owners are dead."""
        yield Statement("release_leaderships")

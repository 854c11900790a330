"""Requests that clients repeat: they join the run of the first one instead of starting another.

Client libraries send a request again after a time-out, a lost connection or an error, without a
key. It is recognised by its content, for as long as nobody has read the answer to the first one.
"""

from datetime import datetime
from functools import partial

import msgspec

from internal.agent.app.idempotency import RepeatableRequest
from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.principals import Principal
from internal.agent.domain.tasks import ENDED, Run
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database, Read, Write
from internal.agent.store.encoding import to_json
from internal.agent.store.stores import Stores

UNREAD_SECONDS = 600
"""How long after the end of its run an answer that nobody has read is given to a repetition."""

READ_SECONDS = 10
"""How long after it was read an answer is given to a repetition that the client declares.

It may have been lost on its way. A failure is given to each repetition: clients that repeat it
because of its status do so within this time.
"""

_COMMAND = "ask"


class _Request(msgspec.Struct, frozen=True):
    """The run of the newest request with a fingerprint. `read` is when its answer was read."""

    task_id: TaskId
    run_id: RunId
    session_id: SessionId
    read: str = ""


def find_repeated(
    stores: Stores, request: RepeatableRequest | None, principal_id: str, *, now: str
) -> Read[Submitted | None]:
    """Return the run that a request joins, None if it needs a run of its own."""
    if request is None:
        return None
    first = yield from _first(stores, request, principal_id)
    run = None if first is None else (yield from stores.runs.get_by_task(first.task_id))
    if first is None or run is None or not _joins(request, first, run, now):
        return None
    return Submitted(run.task_id, run.id, run.session_id, run.status)


def save_request(
    stores: Stores,
    request: RepeatableRequest | None,
    principal_id: str,
    submitted: Submitted,
    *,
    now: str,
) -> Write[None]:
    """Store which run answers a request, in place of an earlier one."""
    if request is not None:
        asked = _Request(submitted.task_id, submitted.run_id, submitted.session_id)
        yield from _save(stores, request, principal_id, asked, now=now)


class RepeatedRequests:
    """The requests that are recognised by their content, across processes and restarts."""

    def __init__(self, database: Database, stores: Stores, clock: Clock) -> None:
        self._database = database
        self._stores = stores
        self._clock = clock

    async def find(
        self, request: RepeatableRequest | None, principal: Principal
    ) -> Submitted | None:
        """Return the run that a request joins, None if it needs a run of its own."""
        if request is None:
            return None
        work = partial(find_repeated, self._stores, request, principal.id, now=self._now())
        return await self._database.read(work, is_short=True)

    async def record(
        self, request: RepeatableRequest | None, principal: Principal, submitted: Submitted
    ) -> None:
        """Store which run answers a request that `Gateway.submit` does not see.

        Such is one whose text answered the question of a run.
        """
        work = partial(
            save_request, self._stores, request, principal.id, submitted, now=self._now()
        )
        if request is not None:
            await self._database.write(work)

    async def mark_read(
        self, request: RepeatableRequest | None, principal: Principal, run_id: RunId
    ) -> None:
        """Store that a client has read the answer of a run to a request."""
        if request is not None:
            await self._database.write(
                partial(self._mark_read, request, principal.id, run_id, now=self._now())
            )

    def _mark_read(
        self, request: RepeatableRequest, principal_id: str, run_id: RunId, *, now: str
    ) -> Write[None]:
        first = yield from _first(self._stores, request, principal_id)
        if first is not None and first.run_id == run_id and not first.read:
            asked = msgspec.structs.replace(first, read=now)
            yield from _save(self._stores, request, principal_id, asked, now=now)

    def _now(self) -> str:
        return rfc3339(self._clock.now())


def _first(stores: Stores, request: RepeatableRequest, principal_id: str) -> Read[_Request | None]:
    stored = yield from stores.results.get(principal_id, _COMMAND, request.fingerprint)
    return None if stored is None else msgspec.json.decode(stored, type=_Request)


def _save(
    stores: Stores, request: RepeatableRequest, principal_id: str, asked: _Request, *, now: str
) -> Write[None]:
    yield from stores.results.replace(
        principal_id,
        _COMMAND,
        request.fingerprint,
        session_id=asked.session_id,
        result=to_json(asked),
        now=now,
    )


def _joins(request: RepeatableRequest, first: _Request, run: Run, now: str) -> bool:
    if run.stop is not None or run.status == "cancelled":
        if not request.joins_stopped:
            return False
    elif request.has_reader and not request.is_repeat:
        return False
    if first.read:
        is_expected = request.is_repeat or run.status == "failed"
        return is_expected and _seconds(first.read, now) <= READ_SECONDS
    return run.status not in ENDED or _seconds(run.ended, now) <= UNREAD_SECONDS


def _seconds(since: str, now: str) -> float:
    return (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds()

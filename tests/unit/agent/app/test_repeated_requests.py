"""Repeated requests that join the run of the first one."""

from datetime import timedelta
from functools import partial

import pytest

from internal.agent.app.idempotency import RepeatableRequest
from internal.agent.app.repeated_requests import (
    FAILED_SECONDS,
    READ_SECONDS,
    UNREAD_SECONDS,
    RepeatedRequests,
)
from internal.agent.app.runs.creation import Submission, Submitted, new_task_ids
from internal.agent.app.task_commands import submit_task
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.tasks import Run, RunSpec, Status, StopReason, StopRequest
from internal.agent.domain.usage import Usage
from internal.agent.store.database import Database
from internal.agent.store.runs import RunEnd
from internal.agent.store.stores import Stores
from tests.support.movable_clock import MovableClock
from tests.support.store_records import claim_run

PLAIN = RepeatableRequest("f")
COUNTED = RepeatableRequest("f", is_repeat=True, joins_stopped=True)
BESIDE = RepeatableRequest("f", has_reader=True)
ANN = Principal("lark:app:ou_1", "Ann", frozenset({"talk"}))


class Requests:
    """Requests on a database, at a time that tests choose."""

    def __init__(self, database: Database, stores: Stores) -> None:
        self.database, self.stores, self.clock = database, stores, MovableClock()
        self.repeated = RepeatedRequests(database, stores, self.clock)

    @property
    def now(self) -> str:
        return rfc3339(self.clock.now())

    async def submit(
        self, request: RepeatableRequest = PLAIN, principal: Principal = LOCAL_OWNER
    ) -> Submitted:
        submission = Submission("count", RunSpec(), "web", request=request)
        ids, now = new_task_ids(), self.now
        return (
            await self.database.write(
                partial(submit_task, self.stores, submission, principal, ids=ids, now=now)
            )
        )[0]

    async def claim(self, submitted: Submitted) -> Run:
        run = await self.database.read(partial(self.stores.runs.get, submitted.run_id))
        assert run is not None
        return await claim_run(self.database, self.stores, run)

    async def end(self, submitted: Submitted, status: Status, reason: StopReason) -> None:
        run = await self.claim(submitted)
        end = RunEnd(status, reason, Usage(), None, "", "", self.now)
        assert await self.database.write(partial(self.stores.runs.end, run.id, run.fence, end))

    async def mark_read(self, submitted: Submitted) -> None:
        await self.repeated.mark_read(PLAIN, LOCAL_OWNER, submitted.run_id)

    async def joining(self) -> list[bool]:
        """Return which of a plain, a counted request and one beside another reader join."""
        found = [await self.repeated.find(each, LOCAL_OWNER) for each in (PLAIN, COUNTED, BESIDE)]
        return [each is not None for each in found]


@pytest.fixture
def requests(database: Database, stores: Stores) -> Requests:
    return Requests(database, stores)


async def test_a_request_joins_a_run_that_nobody_reads(requests: Requests) -> None:
    assert await requests.joining() == [False, False, False]
    first = await requests.submit()
    assert await requests.joining() == [True, True, False]
    assert await requests.submit() == await requests.submit(COUNTED) == first
    assert await requests.submit(RepeatableRequest("g")) != first
    assert await requests.submit(PLAIN, ANN) != first
    beside = await requests.submit(BESIDE)
    assert beside != first
    assert await requests.submit() == beside, "the newest of both"


async def test_an_unread_answer_is_kept_for_a_while(requests: Requests) -> None:
    await requests.end(await requests.submit(), "completed", "final_answer")
    requests.clock.advance(timedelta(seconds=UNREAD_SECONDS - 5))
    assert await requests.joining() == [True, True, False]
    requests.clock.advance(timedelta(seconds=10))
    assert await requests.joining() == [False, False, False]


async def test_an_answer_that_was_read_is_for_declared_repetitions(requests: Requests) -> None:
    first = await requests.submit()
    await requests.end(first, "completed", "final_answer")
    await requests.mark_read(first)
    assert await requests.joining() == [False, True, False]
    requests.clock.advance(timedelta(seconds=READ_SECONDS / 2))
    await requests.mark_read(first)
    requests.clock.advance(timedelta(seconds=READ_SECONDS / 2 + 1))
    assert await requests.joining() == [False, False, False]


async def test_a_failure_is_for_all_repetitions_at_first(requests: Requests) -> None:
    first = await requests.submit()
    await requests.end(first, "failed", "error")
    await requests.mark_read(first)
    requests.clock.advance(timedelta(seconds=FAILED_SECONDS - 1))
    assert await requests.joining() == [True, True, False]
    requests.clock.advance(timedelta(seconds=2))
    assert await requests.joining() == [False, False, False]


async def test_a_stopped_run_is_for_declared_repetitions(requests: Requests) -> None:
    first = await requests.submit()
    await requests.claim(first)
    stop = StopRequest("local", "web", "stopped")
    await requests.database.write(partial(requests.stores.runs.request_stop, first.run_id, stop))
    assert await requests.joining() == [False, True, False]


async def test_an_answer_that_is_read_late_is_that_of_its_run(requests: Requests) -> None:
    first = await requests.submit()
    second = await requests.submit(BESIDE)
    await requests.mark_read(first)
    assert await requests.joining() == [True, True, False]
    await requests.mark_read(second)
    assert await requests.joining() == [False, True, False]


async def test_a_run_can_be_recorded_that_was_not_submitted(requests: Requests) -> None:
    answered = await requests.submit(RepeatableRequest("question"))
    await requests.repeated.record(PLAIN, LOCAL_OWNER, answered)
    assert await requests.repeated.find(PLAIN, LOCAL_OWNER) == answered

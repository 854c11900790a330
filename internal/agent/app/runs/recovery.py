"""Recovery: runs whose process died or that cannot be stored, and questions that expired."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TypeVar

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.runs.answers import apply_answer
from internal.agent.app.runs.creation import TaskIds, load_task, new_task_ids
from internal.agent.app.runs.finalization import (
    FailedStart,
    end_idle_run,
    requeue_run,
    stop_outcome,
)
from internal.agent.app.runs.owners import OwnerWatch
from internal.agent.app.runs.questions import expired_answer
from internal.agent.app.subtasks.endings import wake_run
from internal.agent.domain.errors import (
    Conflict,
    LeaseLost,
    StoreCorrupt,
    StoreUnavailable,
)
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.ids import RunId
from internal.agent.domain.questions import QuestionRecord
from internal.agent.domain.react.steps import TurnOutcome
from internal.agent.domain.tasks import ENDED, Run
from internal.agent.ports.runtime import Clock
from internal.agent.store.checkpoints import decode_checkpoint
from internal.agent.store.database import Database, Read, Write
from internal.agent.store.stores import Stores

T = TypeVar("T", Run, QuestionRecord)

logger = logging.getLogger(__name__)

TERMINAL_CLOSED = "the terminal that ran the task was closed"

UNREADABLE = "checkpoint_unreadable"
"""The error code of a run whose checkpoint cannot be read."""


def is_interrupted(run: Run) -> bool:
    """Return True if an orphaned run must fail: terminal-owned and not re-queued by an answer."""
    return run.terminal and not (run.status == "queued" and run.fence)


MAX_BACKOFF_SECONDS = 60.0
"""The longest wait before a run is started again."""


def backoff(failures: int) -> timedelta:
    """Return how long a run waits after failed starts: 0 s, 1 s, 2 s, 4 s and so on."""
    seconds = 0.0 if failures <= 1 else 2.0 ** min(failures - 2, 16)
    return timedelta(seconds=min(seconds, MAX_BACKOFF_SECONDS))


class Recovery:
    """Requeues orphaned runs, and ends runs that cannot continue.

    A run that cannot be recovered is logged and tried again the next time, and does not affect the
    others.
    """

    def __init__(
        self,
        database: Database,
        stores: Stores,
        *,
        broadcaster: EventBroadcaster,
        clock: Clock,
        owners: OwnerWatch,
    ) -> None:
        self._database = database
        self._stores = stores
        self._broadcaster = broadcaster
        self._clock = clock
        self._owners = owners

    async def recover_after_restart(self) -> int:
        """Requeue the runs of the previous dispatcher and expire questions; return the run count.

        The caller is the only gateway, so the previous one is dead. Terminals may be alive: their
        runs are recovered as in `recover_expired_leases`.
        """
        await self.expire_questions()
        held = await self._database.read(self._stores.runs.list_held)
        requeued = await _each([run for run, _ in held if not run.terminal], self.retry_crashed)
        return len(requeued) + len(await self.recover_expired_leases())

    async def recover_expired_leases(self, active: Collection[RunId] = ()) -> list[Run]:
        """Recover the runs that lost their process (see `OwnerWatch`).

        Return them in their earlier state. Runs in `active` are executed by this process.
        """
        await self._remove_outputs()
        held = await self._database.read(self._stores.runs.list_held)
        lost = self._owners.find_lost(each for each in held if each.run.id not in active)
        return await _each(lost, self._recover_lost)

    async def _remove_outputs(self) -> None:
        """Remove the output of calls whose run has ended: it is part of the log."""
        outputs = self._stores.call_outputs
        for run_id in await asyncio.to_thread(outputs.list_runs):
            run = await self._database.read(partial(self._stores.runs.get, run_id))
            if run is None or run.status in ENDED:
                await asyncio.to_thread(outputs.remove_run, run_id)

    async def expire_questions(self) -> int:
        """Reject the questions whose time is over; return how many."""
        now = self._now()
        questions = await self._database.read(partial(self._stores.questions.list_expired, now))
        return len(await _each(questions, partial(self._expire, now=now)))

    async def end_waits(self) -> int:
        """Queue the runs that have waited for tasks as long as they may; return how many."""
        now = self._now()
        runs = await self._database.read(partial(self._stores.subtasks.list_past_wait, now))
        return len(await _each(runs, partial(self._end_wait, now=now)))

    async def _end_wait(self, run: Run, now: str) -> None:
        wake = partial(wake_run, self._stores, run.id, now=now)
        self._broadcaster.publish(await self._database.write(wake))

    async def requeue_orphaned(self, owner: str, active: Collection[RunId]) -> int:
        """Requeue the runs that an owner holds but no longer executes; return how many.

        This happens when the store failed while the run was executed. `active` must be the live
        set of the owner, not a copy: a run may be claimed while the database is read.
        """
        owned = await self._database.read(partial(self._stores.runs.list_owned, owner))
        orphaned = [run for run in owned if run.id not in active]
        return len(await _each(orphaned, self.retry_unstored))

    async def hand_over(self, run: Run) -> None:
        """Queue a run that this process claimed and does not execute; see `requeue_run`."""
        await self._requeue(run, None)

    async def retry_crashed(self, run: Run) -> None:
        """Queue a run whose process died, or that broke in this one, to be tried again."""
        not_before = rfc3339(self._clock.now() + backoff(run.crashes + 1))
        await self._requeue(run, FailedStart(not_before, crashed=True))

    async def retry_unstored(self, run: Run) -> None:
        """Queue a run whose execution this process could not store, to be tried again."""
        not_before = rfc3339(self._clock.now() + backoff(run.attempt))
        await self._requeue(run, FailedStart(not_before, crashed=False))

    async def _requeue(self, run: Run, failed: FailedStart | None) -> None:
        work = partial(
            requeue_run, self._stores, run, ids=new_task_ids(), now=self._now(), failed=failed
        )
        with suppress(LeaseLost):  # another process has claimed it
            self._broadcaster.publish(await self._database.write(work))

    async def fail(self, run: Run, outcome: TurnOutcome) -> None:
        """End a run that cannot continue, unless another process has resumed it.

        Its work is kept as far as it can be read and stored.

        Raises:
            StoreError: the end cannot be stored.
        """
        try:
            await self._store_failure(run, outcome, with_turn=True)
        except StoreUnavailable:
            raise
        except Exception:
            logger.exception("work of a failed run not kept", extra={"run_id": run.id})
            await self._store_failure(run, outcome, with_turn=False)

    async def _expire(self, question: QuestionRecord, now: str) -> None:
        expired = expired_answer(question, now)
        with suppress(Conflict):  # answered in the meantime
            _, events = await self._database.write(
                partial(apply_answer, self._stores, question, expired, ids=new_task_ids(), now=now)
            )
            self._broadcaster.publish(events)

    async def _recover_lost(self, run: Run) -> None:
        if is_interrupted(run):
            await self._interrupt(run)
        elif run.terminal:  # answered after its terminal was closed: any process may continue
            release = partial(self._stores.runs.release, run.id, run.owner)
            await self._database.write(release)
        else:
            await self.retry_crashed(run)

    async def _interrupt(self, run: Run) -> None:
        """End a run of a closed terminal, and the one above it that waited only for such runs."""
        above = await self._load_parent(run)
        await self.fail(run, TurnOutcome("interrupted", "", TERMINAL_CLOSED))
        if above is not None and above.awaits_tasks and above.owner == run.owner:
            woken = await self._load_parent(run)
            if woken is not None and woken.status == "queued":
                await self._interrupt(woken)

    async def _load_parent(self, run: Run) -> Run | None:
        if run.parent_run_id is None:
            return None
        return await self._database.read(partial(self._stores.runs.get, run.parent_run_id))

    async def _store_failure(self, run: Run, outcome: TurnOutcome, *, with_turn: bool) -> None:
        fail = partial(
            self._fail, run, outcome, new_task_ids(), now=self._now(), with_turn=with_turn
        )
        self._broadcaster.publish(await self._database.write(fail))

    def _fail(
        self, run: Run, outcome: TurnOutcome, ids: TaskIds, *, now: str, with_turn: bool
    ) -> Write[list[EventRecord]]:
        current = yield from self._stores.runs.get(run.id)
        if current is None or current.fence != run.fence or current.status != run.status:
            return []
        if run.status == "running":
            yield from self._stores.runs.requeue(run.id, run.fence)
        task = yield from load_task(self._stores, run)
        if with_turn:
            outcome = yield from self._explain(run, outcome)
        if (stop := current.stop) is not None:
            outcome = stop_outcome(stop.to_error())
        end = partial(end_idle_run, self._stores, run, task, outcome=outcome)
        return (yield from end(ids=ids, now=now, with_turn=with_turn))

    def _explain(self, run: Run, outcome: TurnOutcome) -> Read[TurnOutcome]:
        """Return the outcome, or that the checkpoint cannot be read, whatever else happened."""
        stored = yield from self._stores.runs.get_checkpoint(run.id)
        try:
            if stored is not None:
                decode_checkpoint(stored)
        except StoreCorrupt as error:
            return TurnOutcome("error", "", str(error), UNREADABLE)
        return outcome

    def _now(self) -> str:
        return rfc3339(self._clock.now())


async def _each(items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> list[T]:
    """Do the work for each item; log a failure. Return the items for which it succeeded.

    Raises:
        StoreUnavailable: no item can be processed now.
    """
    succeeded: list[T] = []
    for item in items:
        try:
            await work(item)
        except StoreUnavailable:
            raise
        except Exception:  # as in the dispatcher: one failing run must not affect the others
            run_id = item.id if isinstance(item, Run) else item.run_id
            logger.exception("not recovered", extra={"run_id": run_id})
        else:
            succeeded.append(item)
    return succeeded

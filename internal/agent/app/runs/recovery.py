"""Sweeping: runs whose process died are queued again, those of a terminal are ended."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.runs.active import requeue_run
from internal.agent.app.runs.creation import TaskIds, new_task_ids
from internal.agent.app.runs.finalization import RunResult, finalize_run, find_unfinished_work
from internal.agent.app.runs.questions import apply_answer, expired_answer
from internal.agent.domain.errors import Conflict, StoreError
from internal.agent.domain.events.envelope import RunIds, rfc3339
from internal.agent.domain.events.record import EventRecord
from internal.agent.domain.events.types import LifecycleUpdated, ResultFinal
from internal.agent.domain.ids import RunId
from internal.agent.domain.messages import Message
from internal.agent.domain.tasks import Run
from internal.agent.ports.runtime import Clock
from internal.agent.store.checkpoints import decode_checkpoint
from internal.agent.store.database import Database, Write
from internal.agent.store.runs import RunEnd
from internal.agent.store.stores import Stores

END_OF_TIME = "9999"
"""Later than every lease: all of them are over then."""

TERMINAL_CLOSED = "the terminal that ran it was closed"


def is_interrupted(run: Run) -> bool:
    """Say whether a lost run ends: a terminal's, unless a person's answer queued it again."""
    return run.terminal and not (run.status == "queued" and run.fence)


class Recovery:
    """Finds lost runs and decides what becomes of each."""

    def __init__(
        self, database: Database, stores: Stores, broadcaster: EventBroadcaster, clock: Clock
    ) -> None:
        self._database = database
        self._stores = stores
        self._broadcaster = broadcaster
        self._clock = clock

    async def recover_after_restart(self) -> int:
        """Queue again what the last dispatcher left; return how many runs. It is dead for certain.

        Terminals may be alive: their runs are swept when their leases are over. Questions whose
        time went by meanwhile are a no.
        """
        await self.expire_questions()
        runs = await self._database.read(partial(self._stores.runs.list_expired, END_OF_TIME))
        own = [run for run in runs if not run.terminal]
        for run in own:
            await self._database.write(partial(requeue_run, self._stores, run, self._now()))
        return len(own) + len(await self.recover_expired_leases())

    async def recover_expired_leases(self, at_work: Collection[RunId] = ()) -> list[Run]:
        """Sweep the runs whose lease is over; return them as they were.

        Those at work in this process are its own, whatever their lease says: the machine slept.
        """
        now = self._now()
        found = await self._database.read(partial(self._stores.runs.list_expired, now))
        runs = [run for run in found if run.id not in at_work]
        for run in runs:
            if is_interrupted(run):
                shown = await self._database.write(partial(self._end, run, new_task_ids(), now))
                self._broadcaster.publish(shown)
            elif run.terminal:  # it was answered while its terminal was closed: whoever can goes on
                release = partial(self._stores.runs.release, run.id, run.owner)
                await self._database.write(release)
            else:
                await self._database.write(partial(requeue_run, self._stores, run, self._now()))
        return runs

    async def expire_questions(self) -> int:
        """Answer the questions whose time is over with a no; return how many."""
        now = self._now()
        asked = await self._database.read(partial(self._stores.questions.list_expired, now))
        for each in asked:
            answer = expired_answer(each, now)
            with suppress(Conflict):  # somebody was quicker
                _, shown = await self._database.write(
                    partial(apply_answer, self._stores, each, answer, now)
                )
                self._broadcaster.publish(shown)
        return len(asked)

    async def requeue_orphaned(self, owner: str, at_work: Collection[RunId]) -> int:
        """Queue again what an owner holds and has dropped, after the store failed; how many.

        `at_work` is the owner's own set, not a copy: a run may be claimed before it is looked at.
        """
        held = await self._database.read(partial(self._stores.runs.list_owned, owner))
        dropped = [run for run in held if run.id not in at_work]
        for run in dropped:
            await self._database.write(partial(requeue_run, self._stores, run, self._now()))
        return len(dropped)

    def _end(self, run: Run, fresh: TaskIds, now: str) -> Write[list[EventRecord]]:
        """End a terminal's run as interrupted, unless its process took it up again meanwhile."""
        current = yield from self._stores.runs.get(run.id)
        if current is None or current.fence != run.fence or current.status != run.status:
            return []
        if run.status == "running":
            yield from self._stores.runs.requeue(run.id, run.fence)
        task = yield from self._stores.tasks.get(run.task_id)
        if task is None:
            raise StoreError(f"the task of {run.id} is not in the database")
        events = [
            *find_unfinished_work((yield from self._stores.events.list_by_run(run.id))),
            LifecycleUpdated(status="failed", phase="interrupted", stop_reason="interrupted"),
            ResultFinal(
                final_answer="",
                stop_reason="interrupted",
                total_iterations=0,
                usage=run.usage,
                duration_ms=0,
                error=TERMINAL_CLOSED,
            ),
        ]
        ids = RunIds(run.session_id, run.task_id, run.id, run.parent_run_id)
        shown = yield from self._stores.events.append_idle(ids, events, now)
        end = RunEnd("failed", "interrupted", run.usage, run.cost, "", TERMINAL_CLOSED, now)
        said = yield from self._said(run)
        return shown + (
            yield from finalize_run(self._stores, run, task, RunResult(end, said), fresh)
        )

    def _said(self, run: Run) -> Write[Sequence[Message]]:
        """Return what the run has done so far, for whoever resumes its task."""
        stored = yield from self._stores.runs.get_checkpoint(run.id)
        if stored is None:
            return ()
        turn = decode_checkpoint(*stored)
        turn.settle_interrupted()
        return turn.run_messages()

    def _now(self) -> str:
        return rfc3339(self._clock.now())

"""Recovery: runs whose process died, and questions that expired."""

from collections.abc import Collection
from contextlib import suppress
from functools import partial

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.runs.active import requeue_run
from internal.agent.app.runs.creation import TaskIds, new_task_ids
from internal.agent.app.runs.finalization import end_idle_run
from internal.agent.app.runs.owners import OwnerWatch
from internal.agent.app.runs.questions import apply_answer, expired_answer
from internal.agent.domain.errors import Conflict, StoreError
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.ids import RunId
from internal.agent.domain.react.steps import TurnOutcome
from internal.agent.domain.tasks import Run
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores

TERMINAL_CLOSED = "the terminal that ran the task was closed"


def is_interrupted(run: Run) -> bool:
    """Return True if an orphaned run must fail: terminal-owned and not re-queued by an answer."""
    return run.terminal and not (run.status == "queued" and run.fence)


class Recovery:
    """Requeues orphaned runs, or fails those of a closed terminal."""

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
        own = [run for run, _ in held if not run.terminal]
        for run in own:
            await self._requeue(run)
        return len(own) + len(await self.recover_expired_leases())

    async def recover_expired_leases(self, active: Collection[RunId] = ()) -> list[Run]:
        """Recover the runs that lost their process (see `OwnerWatch`).

        Return them in their earlier state. Runs in `active` are executed by this process.
        """
        now = self._now()
        held = await self._database.read(self._stores.runs.list_held)
        runs = self._owners.find_lost(each for each in held if each.run.id not in active)
        for run in runs:
            if is_interrupted(run):
                fail = partial(self._fail, run, new_task_ids(), now)
                self._broadcaster.publish(await self._database.write(fail))
            elif run.terminal:  # answered after its terminal was closed: any process may continue
                release = partial(self._stores.runs.release, run.id, run.owner)
                await self._database.write(release)
            else:
                await self._requeue(run)
        return runs

    async def expire_questions(self) -> int:
        """Reject the questions whose time is over; return how many."""
        now = self._now()
        questions = await self._database.read(partial(self._stores.questions.list_expired, now))
        for question in questions:
            apply = partial(
                apply_answer, self._stores, question, expired_answer(question, now), now=now
            )
            with suppress(Conflict):  # answered in the meantime
                _, events = await self._database.write(apply)
                self._broadcaster.publish(events)
        return len(questions)

    async def requeue_orphaned(self, owner: str, active: Collection[RunId]) -> int:
        """Requeue the runs that an owner holds but no longer executes; return how many.

        This happens when the store failed at the end of a run. `active` must be the live set of
        the owner, not a copy: a run may be claimed while the database is read.
        """
        owned = await self._database.read(partial(self._stores.runs.list_owned, owner))
        orphaned = [run for run in owned if run.id not in active]
        for run in orphaned:
            await self._requeue(run)
        return len(orphaned)

    async def _requeue(self, run: Run) -> None:
        await self._database.write(partial(requeue_run, self._stores, run, self._now()))

    def _fail(self, run: Run, ids: TaskIds, now: str) -> Write[list[EventRecord]]:
        """End a terminal's run as interrupted, unless its process has resumed it."""
        current = yield from self._stores.runs.get(run.id)
        if current is None or current.fence != run.fence or current.status != run.status:
            return []
        if run.status == "running":
            yield from self._stores.runs.requeue(run.id, run.fence)
        task = yield from self._stores.tasks.get(run.task_id)
        if task is None:
            raise StoreError(f"the task of {run.id} is not in the database")
        outcome = TurnOutcome("interrupted", "", TERMINAL_CLOSED)
        events = yield from end_idle_run(self._stores, run, task, outcome=outcome, ids=ids, now=now)
        return events

    def _now(self) -> str:
        return rfc3339(self._clock.now())

"""Resuming: a run that was begun before goes on where its last checkpoint left it."""

from functools import partial

from internal.agent.app.runs.context import RunContext
from internal.agent.app.runs.finalization import find_unfinished_work
from internal.agent.app.runs.permission_rules import load_rules
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.events.record import EventRecord
from internal.agent.domain.questions import Answer
from internal.agent.domain.react.turn import Turn
from internal.agent.ports.runtime import Clock
from internal.agent.store.checkpoints import decode_checkpoint
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores


class RunResumer:
    """Finds out what an earlier attempt has left."""

    def __init__(self, database: Database, stores: Stores, clock: Clock) -> None:
        self._database = database
        self._stores = stores
        self._clock = clock

    async def turn(self, context: RunContext) -> tuple[Turn | None, bool]:
        """Return the stored Turn, and whether its stages go on where they paused.

        Without a checkpoint the Turn is None: the run prepares again. After anything but a pause
        the log's open ends are closed first.

        Raises:
            StoreRefused: the checkpoint cannot be read.
        """
        if context.run.fence == 1:
            return None, False
        stored = await self._database.read(
            partial(self._stores.runs.get_checkpoint, context.run.id)
        )
        if stored is None:
            await self._close(context, None, frozenset())
            return None, False
        head, rows = stored
        turn = decode_checkpoint(head, rows)
        turn.allow_rules(await load_rules(self._database, self._stores, context.task))
        context.stream.resume_from(len(rows))
        answer = await self._answer(turn)
        if answer is not None:
            events = turn.resolve(answer)
            also = None if answer.edit is None else partial(self._edited, context, turn)
            await context.stream.emit(*events, turn=turn, also=also)
            return turn, True
        again = turn.settle_interrupted()
        await self._close(context, turn, frozenset(call.call_id for call in again))
        return turn, False

    async def _close(self, context: RunContext, turn: Turn | None, again: frozenset[str]) -> None:
        log = await self._database.read(partial(self._stores.events.list_by_run, context.run.id))
        await context.stream.emit(*find_unfinished_work(log, again), turn=turn)

    def _edited(self, context: RunContext, turn: Turn) -> Write[list[EventRecord]]:
        """Store the version of the plan that a person made."""
        run, now = context.run, rfc3339(self._clock.now())
        if turn.plan is not None:
            yield from self._stores.questions.save_plan(run.id, run.session_id, turn.plan, now=now)
        return []

    async def _answer(self, turn: Turn) -> Answer | None:
        """Return the stored answer to the Turn's question, if it has one and there is one."""
        if turn.question is None:
            return None
        asked = await self._database.read(partial(self._stores.questions.get, turn.question.id))
        return None if asked is None else asked.answer

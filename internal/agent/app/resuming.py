"""Resuming: a run that was begun before goes on where its last checkpoint left it."""

from functools import partial

from internal.agent.app.checkpoints import restored
from internal.agent.app.context import RunContext
from internal.agent.app.open_ends import open_ends
from internal.agent.domain.questions import Answer
from internal.agent.domain.turn import Turn
from internal.agent.ports.database import Database
from internal.agent.ports.stores import Stores


class Resumption:
    """Finds out what an earlier attempt has left."""

    def __init__(self, database: Database, stores: Stores) -> None:
        self._database = database
        self._stores = stores

    async def turn(self, context: RunContext) -> tuple[Turn | None, bool]:
        """Return the stored Turn, and whether its stages go on where they paused.

        Without a checkpoint the Turn is None: the run prepares again. After anything but a pause
        the log's open ends are closed first.

        Raises:
            StoreRefused: the checkpoint cannot be read.
        """
        if context.run.fence == 1:
            return None, False
        stored = await self._database.read(partial(self._stores.runs.checkpoint, context.run.id))
        if stored is None:
            await self._close(context, None, frozenset())
            return None, False
        head, rows = stored
        turn = restored(head, rows)
        context.stream.goes_on(len(rows))
        answer = await self._answer(turn)
        if answer is not None:
            await context.stream.emit(*turn.answered(answer), turn=turn)
            return turn, True
        again = turn.interrupted()
        await self._close(context, turn, frozenset(call.call_id for call in again))
        return turn, False

    async def _close(self, context: RunContext, turn: Turn | None, again: frozenset[str]) -> None:
        log = await self._database.read(partial(self._stores.log.of_run, context.run.id))
        await context.stream.emit(*open_ends(log, again), turn=turn)

    async def _answer(self, turn: Turn) -> Answer | None:
        """Return the stored answer to the Turn's question, if it has one and there is one."""
        if turn.question is None:
            return None
        asked = await self._database.read(partial(self._stores.questions.get, turn.question.id))
        return None if asked is None else asked.answer

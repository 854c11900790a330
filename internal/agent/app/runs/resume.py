"""Resume: continues a run from its checkpoint, or from that of a failed run."""

import asyncio
from collections.abc import Iterable, Iterator
from functools import partial

import msgspec

from internal.agent.app.access import load_rules
from internal.agent.app.runs.context import RunContext, RunServices, find_workspace
from internal.agent.app.runs.finalization import (
    find_unfinished_work,
    load_turn,
    stopped_texts,
)
from internal.agent.domain.errors import SandboxUnavailable
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.events.types import Event, ToolCompleted
from internal.agent.domain.ids import RunId
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.questions import Answer
from internal.agent.domain.react.history import History
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import Task
from internal.agent.ports.llm import ModelBook
from internal.agent.store.checkpoints import CheckpointEncoder, decode_checkpoint
from internal.agent.store.database import Read, Write
from internal.agent.store.history import load_history
from internal.agent.store.stores import Stores

_NOT_ISOLATED = (
    "The commands of this run were isolated, and here they cannot be. Resume it to be asked about"
    " commands."
)


def copy_turn(stores: Stores, failed_id: RunId, run_id: RunId, *, instruction: str) -> Write[None]:
    """Store the Turn of a failed run as the first checkpoint of a new run of its session.

    `instruction` is the task of the new run. Without a readable checkpoint nothing is stored: the
    new run begins with the history of the session.
    """
    failed = yield from stores.runs.get(failed_id)
    turn = None if failed is None else (yield from load_turn(stores, failed))
    if failed is None or turn is None:
        return
    newest = yield from stores.sessions.list_messages(failed.session_id, None, 1)
    turn.resume_as(run_id, instruction, newest[0].number if newest else 0)
    yield from stores.runs.save_checkpoint(run_id, CheckpointEncoder().encode(turn))


def _without_calls(events: Iterable[Event], call_ids: frozenset[str]) -> Iterator[Event]:
    """Yield the events, except the ones that close these calls."""
    for event in events:
        if not (isinstance(event, ToolCompleted) and event.call_id in call_ids):
            yield event


class RunResumer:
    """Restores the Turn that an earlier attempt stored."""

    def __init__(self, services: RunServices, book: ModelBook, *, isolated: bool) -> None:
        self._book = book
        self._isolated = isolated
        self._services = services
        self._database = services.database
        self._stores = services.stores
        self._clock = services.clock

    async def resume(self, context: RunContext) -> tuple[Turn | None, bool]:
        """Return the stored Turn and whether the run continues after a pause.

        The Turn is None if there is no checkpoint: the run is prepared again. Unless the run
        paused, the work that its log leaves open is closed first.

        Raises:
            StoreCorrupt: the checkpoint cannot be read.
            SandboxUnavailable: commands of the run were isolated, and cannot be here.
        """
        if context.claimed is not None:
            return None, False
        work = partial(self._stores.runs.get_checkpoint, context.run.id)
        is_first = context.run.fence == 1  # only a run that continues another one has a checkpoint
        stored = await self._database.read(work, is_short=is_first)
        if stored is None:
            if context.run.fence > 1:
                events = await self._find_unfinished_work(context)
                await context.stream.emit(*events)
            return None, False
        # with a megabyte of arguments each of these takes tens of milliseconds
        turn = await asyncio.to_thread(decode_checkpoint, stored)
        model = self._book.usable_model(context.task.spec.provider, turn.config.model)
        if turn.config.policy.mode is Mode.RUN and turn.config.isolated > self._isolated:
            raise SandboxUnavailable(_NOT_ISOLATED)  # calls that nobody was asked about may wait
        turn.config = msgspec.structs.replace(turn.config, model=model, isolated=self._isolated)
        await self._move_workspace(context, turn)
        history, rules, answer = await self._database.read(
            partial(self._read_stored, context.task, turn)
        )
        if history is not None:
            turn.add_history(history)
        turn.allow_rules(rules)
        context.stream.resume_from(len(stored.rows))
        if answer is not None:
            events = await asyncio.to_thread(turn.resolve, answer)
            also = None if answer.edit is None else partial(self._save_plan, context, turn)
            await context.stream.emit(*events, turn=turn, also=also)
            return turn, True
        turn.end_waits()
        if turn.waits and not turn.started:  # nothing ran when the run began to wait
            return turn, True
        closing = await self._find_unfinished_work(context)
        texts = stopped_texts(closing)
        # a call that was running at two crashes in a row may be what kills the process
        repeated = turn.settle_interrupted(repeat=context.run.crashes <= 1, texts=texts)
        asking = turn.inputs.keys() | turn.waits.keys()
        unfinished = frozenset(call.call_id for call in repeated) | asking
        await context.stream.emit(*_without_calls(closing, unfinished), turn=turn)
        return turn, False

    async def _move_workspace(self, context: RunContext, turn: Turn) -> None:
        """Give a Turn of another host the path of the session's folder on this one.

        Raises:
            RequestError: the folder cannot be used.
        """
        config, spec = turn.config, context.task.spec
        if spec.workspace and not spec.own_folder:
            return
        workspace = await find_workspace(self._services, context)
        if config.workspace and config.workspace != workspace:
            turn.config = msgspec.structs.replace(
                config,
                workspace=workspace,
                system=config.system.replace(config.workspace, workspace),
            )

    async def _find_unfinished_work(self, context: RunContext) -> list[Event]:
        """Return the events that close the work that the previous process left open."""
        log = await self._database.read(partial(self._stores.events.list_by_run, context.run.id))
        outputs = self._stores.call_outputs
        return await asyncio.to_thread(find_unfinished_work, log, outputs=outputs)

    def _save_plan(self, context: RunContext, turn: Turn) -> Write[list[EventRecord]]:
        """Store the plan that the answer edited."""
        run, now = context.run, rfc3339(self._clock.now())
        if turn.plan is not None:
            yield from self._stores.questions.save_plan(run.id, run.session_id, turn.plan, now=now)
        return []

    def _read_stored(
        self, task: Task, turn: Turn
    ) -> Read[tuple[History | None, list[str], Answer | None]]:
        """Return the history (None in a subtask), the rules, and the answer to the question."""
        stores, history, answer = self._stores, None, None
        if not task.is_subtask:
            history = yield from load_history(stores.sessions, task.session_id, turn.history)
        rules = yield from load_rules(stores, task)
        if turn.question is not None:
            record = yield from stores.questions.get(turn.question.id)
            answer = None if record is None else record.answer
        return history, rules, answer

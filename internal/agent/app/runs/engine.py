"""ReactEngine: does the I/O that a Turn asks for, and nothing else."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import assert_never

from internal.agent.app.events.writer import Emit
from internal.agent.app.runs.context import RunContext
from internal.agent.app.runs.tool_execution import ToolExecutor
from internal.agent.domain.errors import ContextTooLong, ModelError, ModelUnreachable
from internal.agent.domain.events.record import EventRecord
from internal.agent.domain.events.types import (
    InputReceived,
    NodeCompleted,
    NodeFailed,
    NodeStarted,
    OutputDelta,
    OutputSummary,
    Partial,
)
from internal.agent.domain.messages import Message
from internal.agent.domain.react.context_window import text_tokens, tools_tokens
from internal.agent.domain.react.steps import Act, Ask, Done, Pause
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.text import truncate_json
from internal.agent.ports.llm import (
    ModelBook,
    ModelClient,
    ModelRequest,
    ModelResponse,
    ModelStreamEvent,
    StreamRestarted,
    TextDelta,
)
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database, Write
from internal.agent.store.inbox import Steering
from internal.agent.store.stores import Stores


class ReplyStream:
    """Counts the pieces of one reply: those of the answer and those of the reasoning apart."""

    def __init__(self, emit: Emit, iteration: int) -> None:
        self.node_id = f"iter:{iteration}:say"
        self._emit = emit
        self._thinking = f"iter:{iteration}:think"
        self._said: dict[str, int] = {}

    async def hear(self, pieces: AsyncGenerator[ModelStreamEvent, None]) -> ModelResponse:
        """Show the words as they come and return the whole reply.

        Raises:
            ModelError: the model cannot be used, whatever was tried.
        """
        async with aclosing(pieces):
            async for piece in pieces:
                match piece:
                    case TextDelta():
                        await self._show(piece)
                    case StreamRestarted():
                        await self._start_over()
                    case ModelResponse():
                        return piece
        raise ModelUnreachable("The model ended its reply too early.")

    async def _show(self, words: TextDelta) -> None:
        node_id = self._thinking if words.reasoning else self.node_id
        k = self._said[node_id] = self._said.get(node_id, 0) + words.n
        if words.reasoning:
            delta = OutputDelta(node_id=node_id, k=k, n=words.n, text=words.text, reasoning=True)
        else:
            delta = OutputDelta(node_id=node_id, k=k, n=words.n, text=words.text)
        await self._emit(delta)

    async def _start_over(self) -> None:
        void = [Partial(node_id=node_id, k=0, text="") for node_id in self._said]
        self._said.clear()
        if void:
            await self._emit(*void)


CONTEXT_MARGIN = 0.95
"""Weights are estimates: this share of the context window is used."""


class ReactEngine:
    """Think, plan tools, execute tools, observe: until the Turn pauses or is done."""

    def __init__(
        self,
        model: ModelClient,
        book: ModelBook,
        runner: ToolExecutor,
        database: Database,
        stores: Stores,
        clock: Clock,
    ) -> None:
        self._model = model
        self._book = book
        self._runner = runner
        self._database = database
        self._stores = stores
        self._clock = clock

    async def solve(self, context: RunContext, turn: Turn, *, paused: bool = False) -> Pause | Done:
        """Drive the Turn to its pause or its end; every iteration is announced as a node.

        `paused`: it goes on after a pause, in the iteration that asked.

        Raises:
            ModelError: the model cannot be used, whatever was tried.
            StoreError, Fenced: the log cannot be written any more.
        """
        taken: set[int] = set()
        finished = turn.iteration - (paused or bool(turn.calls))
        if finished < turn.iteration and not paused:
            await context.stream.emit(_started(turn.iteration))
        begun, tokens, tools = self._clock.monotonic(), 0, 0
        while True:
            if turn.iteration > finished and not turn.calls:
                finished = turn.iteration
                done = NodeCompleted(
                    node_id=f"iter:{finished}",
                    kind="iteration",
                    duration_ms=self._since(begun),
                    tokens_used=tokens,
                    tools_run=tools,
                )
                await context.stream.emit(done, turn=turn)
            match turn.next():
                case Ask(_, final):
                    if final or not await self._steered(context, turn, taken):
                        begun, tools = self._clock.monotonic(), 0
                        tokens = (await self._think(context, turn)).usage.total
                case Act(calls):
                    tools += len(calls)
                    await self._runner.run(context, turn, calls)
                case Pause() | Done() as end:
                    return await self._previewed(context, turn, end)
                case _ as never:
                    assert_never(never)

    async def _previewed(self, context: RunContext, turn: Turn, end: Pause | Done) -> Pause | Done:
        """Return the end; a question about calls shows what they would change."""
        if isinstance(end, Done):
            return end
        await self._runner.preview(context, turn)
        return end if turn.question is None else Pause(turn.question)

    async def _steered(self, context: RunContext, turn: Turn, taken: set[int]) -> bool:
        """Give the Turn what people said meanwhile; it is taken when that is stored."""
        untold = await self._database.read(
            partial(self._stores.inbox.list_undelivered, context.ids.run_id)
        )
        # what was taken a moment ago may not be stored yet
        words = [each for each in untold if each.number not in taken]
        if not words:
            return False
        for each in words:
            taken.add(each.number)
            turn.add_user_message(each.text)
        await context.stream.emit(
            *(
                InputReceived(
                    task=truncate_json(each.text),
                    channel=each.channel,
                    sender=each.principal,
                    steer=True,
                )
                for each in words
            ),
            turn=turn,
            also=partial(self._told, words),
        )
        return True

    def _told(self, words: list[Steering]) -> Write[list[EventRecord]]:
        yield from self._stores.inbox.mark_delivered([each.number for each in words])
        return []

    async def _think(self, context: RunContext, turn: Turn) -> ModelResponse:
        number = turn.iteration + 1
        await context.stream.emit(_started(number))
        begun = self._clock.monotonic()
        saying = ReplyStream(context.stream.emit, number)
        try:
            reply = await self._reply(context, turn, saying)
        except ModelError as error:
            failed = NodeFailed(
                node_id=saying.node_id,
                kind="generation",
                phase="think",
                error=truncate_json(str(error)),
                recoverable=False,
            )
            await context.stream.emit(failed)
            raise
        cost = self._book.prices.cost(reply.model, reply.usage)
        summary = OutputSummary(
            node_id=saying.node_id,
            iteration=number,
            content=truncate_json(Message("assistant", reply.parts).text),
            tool_call_count=len(Message("assistant", reply.parts).calls),
            llm_duration_ms=self._since(begun),
            llm_request_id=reply.request_id,
            llm_model=reply.model,
            usage=reply.usage,
        )
        events = turn.add_reply(reply.parts, reply.model, reply.usage, cost)
        await context.stream.emit(summary, *events, turn=turn)
        return reply

    async def _reply(self, context: RunContext, turn: Turn, saying: ReplyStream) -> ModelResponse:
        """Ask with what fits into the context window; when the provider disagrees, with less."""
        limits = self._book.limits(turn.config.model)
        fixed = text_tokens(turn.config.system) + tools_tokens(turn.config.tools)
        room = int(limits.context_window * CONTEXT_MARGIN) - limits.max_output_tokens - fixed
        left_out = turn.fit_context(max(room, 1))
        if left_out is not None:
            await context.stream.emit(left_out, turn=turn)
        try:
            return await saying.hear(self._model.stream(self._request(turn)))
        except ContextTooLong:
            left_out = turn.fit_context(max(room, 1), refused=True)
            if left_out is None:
                raise
            await context.stream.emit(left_out, turn=turn)
            return await saying.hear(self._model.stream(self._request(turn)))

    def _request(self, turn: Turn) -> ModelRequest:
        ask = turn.next()
        if not isinstance(ask, Ask):
            raise TypeError(f"the Turn asks for {type(ask).__name__}, not for the model")
        return ModelRequest(
            model=turn.config.model,
            system=turn.config.system,
            messages=ask.messages,
            tools=turn.config.tools,
            tool_choice="none" if ask.final else "auto",
            max_output_tokens=self._book.limits(turn.config.model).max_output_tokens,
            temperature=self._book.temperature,
        )

    def _since(self, begun: float) -> int:
        return round((self._clock.monotonic() - begun) * 1000)


def _started(number: int) -> NodeStarted:
    return NodeStarted(node_id=f"iter:{number}", kind="iteration", iteration=number)

"""Saying: a reply of the model on its way to the watchers."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from internal.agent.app.events.writer import Emit
from internal.agent.domain.errors import ModelUnreachable
from internal.agent.domain.events.types import OutputDelta, Partial
from internal.agent.ports.llm import ModelResponse, ModelStreamEvent, StreamRestarted, TextDelta


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

"""The reply of a run to a turn of a conversation."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from internal.agent.domain.tasks import Run
from internal.channels.web.completions.answers import reached_limit, settled_run, stop_error
from internal.channels.web.completions.conversation import ConversationTurn
from internal.channels.web.completions.replies import ReplyEnd
from internal.channels.web.completions.run_text import RunText
from internal.channels.web.delivery import Delivery
from internal.channels.web.endpoints import ApiRequest


class RunReply:
    """The reply of a run; see `CompletionReply`."""

    def __init__(
        self, request: ApiRequest[Any, Any], turn: ConversationTurn, delivery: Delivery
    ) -> None:
        self.id: str = turn.submitted.run_id
        self._request, self._turn, self._delivery = request, turn, delivery
        self._text = RunText(request, turn.submitted, turn.start)

    async def whole(self) -> ReplyEnd:
        """Return the last reply of the run, or the question that it waits with."""
        submitted = self._turn.submitted
        try:
            run = await self._delivery.settled_run(submitted, settled_run(self._request, submitted))
            answer = await self._turn.answer(run)
            if not run.is_settled:  # a task of it asks
                await self._delivery.mark_read(submitted)
            return await self._end(run, answer, "")
        finally:
            await self._turn.leave()

    async def pieces(self) -> AsyncGenerator[str]:
        """Yield the text of all replies of the run."""
        async with aclosing(self._text.pieces()) as pieces:
            async for piece in pieces:
                self._turn.hear(piece)
                yield piece

    async def end(self) -> ReplyEnd:
        """Return the end of the run, or the question that it waits with."""
        if (run := self._text.run) is None:
            raise stop_error(self._turn.submitted)
        answer = await self._turn.answer(run)
        rest = self._text.missing(answer)
        self._turn.hear(rest)
        return await self._end(run, answer, rest)

    async def leave(self) -> None:
        """Let the conversation continue from the text that the client has read."""
        await self._turn.leave()

    async def _end(self, run: Run, answer: str, rest: str) -> ReplyEnd:
        await self._turn.finish(run, answer)
        return ReplyEnd(answer, rest, run.usage, reached_limit(run), run.status)

"""The text of a run while it is written, from the events that the run sends."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec

from internal.agent.app.events.subscription import Cursor, StreamItem
from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.events.control import ReplayDone
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.tasks import Run
from internal.channels.web.completions.answers import find_settled, may_settle
from internal.channels.web.endpoints import ApiRequest

_PING_SECONDS = 15.0
_DELTA, _PARTIAL = "workflow.node.output.delta", "partial"
_SUMMARY = "workflow.node.output.summary"
_TEXT_EVENTS = frozenset({_DELTA, _PARTIAL, _SUMMARY})


class RunText:
    """The text of all replies of a run, from its start."""

    def __init__(
        self, request: ApiRequest[Any, Any], submitted: Submitted, start: Cursor | None = None
    ) -> None:
        """Args: start is the cursor before the events; None starts at the first one of the run."""
        self.run: Run | None = None
        """The run, once it is settled."""
        self._request, self._submitted, self._start = request, submitted, start
        self._node = ""
        """The reply that is being sent."""
        self._reply = ""
        """Its text so far."""
        self._pieces = 0
        """The number of pieces in it."""
        self._gap = False
        """An empty line comes before the next text."""

    async def pieces(self) -> AsyncGenerator[str]:
        """Yield new text until the run is settled, and "" when there was none for a while."""
        gateway, watched = self._request.services.gateway, frozenset({self._submitted.session_id})
        start = self._start or await gateway.queries.cursor_before_run(self._submitted.run_id)
        is_live = False
        async with aclosing(gateway.watch(watched, start)) as batches:
            async for batch in _with_pauses(batches):
                if batch is None:
                    yield ""
                    continue
                for text in filter(None, map(self._text_of, batch)):
                    yield text
                # before that, more stored replies may come
                is_live = is_live or any(isinstance(item, ReplayDone) for item in batch)
                if is_live and any(map(may_settle, batch)):
                    self.run = await find_settled(self._request, self._submitted)
                    if self.run is not None:
                        return

    def missing(self, answer: str) -> str:
        """Return the part of the answer not yielded yet. An answer has no blanks at its ends."""
        said = self._reply.rstrip()
        if said and answer.startswith(said):
            return answer.removeprefix(said).removeprefix(self._reply.removeprefix(said))
        return self._advance(answer)

    def _text_of(self, item: StreamItem) -> str:
        """Return the new text of an event of the run."""
        if not isinstance(item, EventRecord) or item.run_id != self._submitted.run_id:
            return ""
        if item.event not in _TEXT_EVENTS:
            return ""
        payload = msgspec.json.decode(item.json)["payload"]
        node = payload["node_id"]
        if not node.endswith(":say"):  # reasoning, or the output of a tool
            return ""
        if node != self._node:
            self._node, self._pieces = node, 0
            self._gap, self._reply = self._gap or bool(self._reply), ""
        return self._advance(self._text_so_far(item.event, payload))

    def _text_so_far(self, event: str, payload: dict[str, Any]) -> str:
        """Return the known text of a reply up to an event."""
        if event == _SUMMARY:
            return str(payload["content"])
        if event == _PARTIAL:
            self._pieces = payload["k"]
            return str(payload["text"])
        if payload["k"] - payload["n"] != self._pieces:  # missed: the next partial has it
            return self._reply
        self._pieces = payload["k"]
        return f"{self._reply}{payload['text']}"

    def _advance(self, text: str) -> str:
        """Take the text of the current reply so far, and return its unsent part.

        Leading blanks are not sent: the stored answer has none.
        """
        text = text.lstrip()
        new = text.removeprefix(self._reply)
        if not text.startswith(self._reply):  # the model began the reply again
            self._gap = True
        self._reply = text
        if not new:
            return ""
        gap, self._gap = "\n\n" * self._gap, False
        return gap + new


async def _with_pauses(
    batches: AsyncGenerator[list[StreamItem]],
) -> AsyncGenerator[list[StreamItem] | None]:
    """Yield the batches, and None whenever there was none for a while."""
    following = asyncio.create_task(_next(batches))
    try:
        while True:
            done, _ = await asyncio.wait({following}, timeout=_PING_SECONDS)
            if not done:
                yield None
                continue
            batch = following.result()
            if batch is None:
                return
            yield batch
            following = asyncio.create_task(_next(batches))
    finally:
        following.cancel()
        await asyncio.wait({following})


async def _next(batches: AsyncGenerator[list[StreamItem]]) -> list[StreamItem] | None:
    return await anext(batches, None)

"""The stream of one model reply. The engine as a whole: tests/integration/agent/test_runs.py."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from internal.agent.app.runs.engine import ReplyStream
from internal.agent.domain.errors import ModelUnreachable
from internal.agent.domain.events.types import Event, OutputDelta, Partial
from internal.agent.domain.messages import Text
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelResponse, ModelStreamEvent, StreamRestarted, TextDelta
from internal.observability.clock import SystemClock

RESPONSE = ModelResponse((Text("hello"),), Usage(), "end", "model-1")


async def consume(*pieces: ModelStreamEvent) -> list[Event]:
    """Return the events that a stream of these pieces emits."""
    emitted: list[Event] = []

    async def emit(*events: Event, **_options: Any) -> None:
        emitted.extend(events)

    async def stream() -> AsyncGenerator[ModelStreamEvent, None]:
        for piece in pieces:
            yield piece

    assert await ReplyStream(emit, 2, SystemClock()).consume(stream()) is RESPONSE
    return emitted


async def test_answer_and_reasoning_are_counted_separately() -> None:
    events = await consume(
        TextDelta("hm", 2, reasoning=True), TextDelta("hel", 3), TextDelta("lo"), RESPONSE
    )
    assert events == [
        OutputDelta(node_id="iter:2:think", k=2, n=2, text="hm", reasoning=True),
        OutputDelta(node_id="iter:2:say", k=3, n=3, text="hel"),
        OutputDelta(node_id="iter:2:say", k=4, n=1, text="lo"),
    ]


async def test_a_restart_clears_the_text_and_the_count() -> None:
    events = await consume(
        StreamRestarted("early"),
        TextDelta("hal"),
        StreamRestarted("broke"),
        TextDelta("h"),
        RESPONSE,
    )
    assert events[1:] == [
        Partial(node_id="iter:2:say", k=0, text=""),
        OutputDelta(node_id="iter:2:say", k=1, n=1, text="h"),
    ]


async def test_a_stream_without_a_response_is_an_error() -> None:
    with pytest.raises(ModelUnreachable, match="ended early"):
        await consume(TextDelta("hal"))


class CountingClock(SystemClock):
    """A clock that is one second later each time it is read."""

    seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 1
        return self.seconds


async def test_the_time_of_the_reasoning_is_measured() -> None:
    async def emit(*_events: Event, **_options: Any) -> None:
        pass

    async def stream() -> AsyncGenerator[ModelStreamEvent, None]:
        for text in (
            TextDelta("hm", reasoning=True),  # at 1 s
            TextDelta("hm", reasoning=True),
            TextDelta("so"),  # at 2 s
            TextDelta("and", reasoning=True),  # at 3 s
        ):
            yield text
        yield RESPONSE  # at 4 s

    reply = ReplyStream(emit, 1, CountingClock())
    await reply.consume(stream())
    assert reply.thinking_seconds == 2.0

"""The one retry layer, over real clients and a real wire: how often, how long, and to whom."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.errors import (
    ContextTooLong,
    ModelError,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnreachable,
)
from internal.agent.domain.messages import Text, user_message
from internal.agent.ports.llm import (
    ModelRequest,
    ModelResponse,
    ModelStreamEvent,
    StreamRestarted,
    TextDelta,
)
from internal.llm.anthropic import AnthropicModel
from internal.llm.retry import RetryingModel, RetryPolicy, Route
from internal.llm.transport import ApiKey
from tests.support.anthropic_server import Fault, ScriptedAnthropic
from tests.support.anthropic_server import Reply as Scripted

REQUEST = ModelRequest("claude-first", "", (user_message("hi"),))
BUSY = Scripted(fault=Fault("status", status=529))
BROKEN = Scripted(
    text="one two three", pieces=3, fault=Fault("overloaded_in_stream", after_pieces=2)
)


class House:
    """A retrying model over one fake server; a fallback has another model's name."""

    def __init__(self, server: ScriptedAnthropic, *, fallbacks: tuple[str, ...] = ()) -> None:
        self.waits: list[float] = []
        self.server = server
        self.client = AnthropicModel(ApiKey("k"), base_url=server.base_url)
        routes = [Route(self.client), *(Route(self.client, name) for name in fallbacks)]
        self.model = RetryingModel(
            routes, policy=RetryPolicy(retries=3), concurrency=2, sleep=self._sleep
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def hear(self) -> list[ModelStreamEvent]:
        return [piece async for piece in self.model.stream(REQUEST)]

    @property
    def asked(self) -> list[str]:
        return [request["model"] for request in self.server.requests]


@pytest.fixture
async def server() -> AsyncIterator[ScriptedAnthropic]:
    async with ScriptedAnthropic() as fake:
        yield fake


@pytest.fixture
async def house(server: ScriptedAnthropic) -> AsyncIterator[House]:
    built = House(server, fallbacks=("claude-second", "claude-third"))
    yield built
    await built.model.close()


@pytest.fixture
async def alone(server: ScriptedAnthropic) -> AsyncIterator[House]:
    built = House(server)
    yield built
    await built.model.close()


def kinds(pieces: list[ModelStreamEvent]) -> str:
    return " ".join(type(piece).__name__ for piece in pieces)


async def test_a_call_that_works_is_made_once(house: House) -> None:
    house.server.add(Scripted(text="well"))
    assert kinds(await house.hear()) == "TextDelta ModelResponse"
    assert (house.asked, house.waits) == (["claude-first"], [])


async def test_before_the_first_words_it_is_tried_again_after_growing_waits(house: House) -> None:
    drop = Scripted(fault=Fault("drop"))
    inside = Scripted(fault=Fault("overloaded_in_stream"))
    house.server.add(BUSY, drop, inside, Scripted(text="well"))
    assert kinds(await house.hear()) == "TextDelta ModelResponse"
    assert house.asked == ["claude-first"] * 4
    for wait, most in zip(house.waits, (0.5, 1.0, 2.0), strict=True):
        assert most / 2 <= wait <= most


async def test_the_provider_is_waited_for_but_not_for_ever(alone: House) -> None:
    asked = [Fault("status", status=429, retry_after=wait) for wait in (7, 100_000)]
    alone.server.add(*(Scripted(fault=fault) for fault in asked), Scripted(text="well"))
    await alone.hear()
    assert alone.waits == [7.0, 30.0]


async def test_after_the_last_try_the_error_is_told(alone: House) -> None:
    alone.server.add(*[BUSY] * 9)
    with pytest.raises(ModelOverloaded, match="Overloaded"):
        await alone.hear()
    assert len(alone.asked) == 4


async def test_after_the_first_words_it_begins_anew_once(alone: House) -> None:
    alone.server.add(BROKEN, Scripted(text="whole", pieces=2))
    pieces = await alone.hear()
    assert kinds(pieces) == "TextDelta StreamRestarted TextDelta ModelResponse"
    assert isinstance(pieces[1], StreamRestarted)
    assert "Overloaded" in pieces[1].reason
    reply = pieces[-1]
    assert isinstance(reply, ModelResponse)
    assert reply.parts == (Text("whole"),)


async def test_begun_anew_twice_is_given_up(alone: House) -> None:
    alone.server.add(BROKEN, BROKEN, Scripted(text="never heard"))
    pieces: list[ModelStreamEvent] = []
    with pytest.raises(ModelOverloaded):
        pieces.extend([piece async for piece in alone.model.stream(REQUEST)])
    assert len(alone.asked) == 2


async def test_a_cut_stream_begins_anew(alone: House) -> None:
    cut = Scripted(
        text="a b", pieces=2, after_pieces=1, hold="heard", fault=Fault("cut_after_bytes", bytes=0)
    )
    alone.server.add(cut, Scripted(text="whole"))
    pieces: list[ModelStreamEvent] = []
    async for piece in alone.model.stream(REQUEST):
        alone.server.release("heard")  # cut only what was heard: a reset may overtake its bytes
        pieces.append(piece)
    assert kinds(pieces) == "TextDelta StreamRestarted TextDelta ModelResponse"


async def test_busy_tries_after_a_start_over_still_count(alone: House) -> None:
    alone.server.add(BROKEN, BUSY, BUSY, Scripted(text="whole"))
    assert kinds(await alone.hear()) == "TextDelta StreamRestarted TextDelta ModelResponse"
    assert len(alone.asked) == 4


@pytest.mark.parametrize(
    ("status", "message", "ours"),
    [
        (401, "no", ModelKeyRejected),
        (400, "no", ModelRejected),
        (400, "prompt is too long: 2 tokens > 1 maximum", ContextTooLong),
        (413, "no", ContextTooLong),
    ],
)
async def test_what_will_not_get_better_is_told_at_once(
    house: House, status: int, message: str, ours: type[ModelError]
) -> None:
    house.server.add(Scripted(fault=Fault("status", status=status, message=message)))
    with pytest.raises(ours):
        await house.hear()
    assert (house.asked, house.waits) == (["claude-first"], [])


async def test_fallbacks_come_in_order_and_are_never_silent(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    house.server.add(*[BUSY] * 4, *[BUSY] * 4, Scripted(text="third time lucky"))
    pieces = await house.hear()
    assert house.asked == ["claude-first"] * 4 + ["claude-second"] * 4 + ["claude-third"]
    assert kinds(pieces) == "TextDelta ModelResponse"
    reply = pieces[-1]
    assert isinstance(reply, ModelResponse)
    assert reply.model == "claude-third"
    told = [record for record in caplog.records if "falling back" in record.message]
    assert [vars(record)["fallback"] for record in told] == ["claude-second", "claude-third"]


async def test_a_fallback_after_words_begins_anew(house: House) -> None:
    house.server.add(BROKEN, BROKEN, Scripted(text="from another"))
    pieces = await house.hear()
    assert (
        kinds(pieces)
        == "TextDelta StreamRestarted TextDelta StreamRestarted TextDelta ModelResponse"
    )
    assert isinstance(pieces[3], StreamRestarted)
    assert "claude-second" in pieces[3].reason


async def test_when_all_are_busy_the_last_error_is_told(house: House) -> None:
    house.server.add(*[BUSY] * 8, *[Scripted(fault=Fault("drop"))] * 4)
    with pytest.raises(ModelUnreachable):
        await house.hear()
    assert len(house.server.requests) == 12


async def test_no_more_calls_at_once_than_there_are_places(alone: House) -> None:
    alone.server.add(*[Scripted(text="well", hold="go")] * 5)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(alone.hear()) for _ in range(5)]
        await alone.server.until_open(2)
        assert alone.server.count == 2
        alone.server.release("go")
    assert [kinds(task.result()) for task in tasks] == ["TextDelta ModelResponse"] * 5


async def test_who_waits_for_the_next_try_holds_no_place(server: ScriptedAnthropic) -> None:
    asleep, awake = asyncio.Event(), asyncio.Event()

    async def sleep(_seconds: float) -> None:
        asleep.set()
        await awake.wait()

    client = AnthropicModel(ApiKey("k"), base_url=server.base_url)
    model = RetryingModel([Route(client)], concurrency=1, sleep=sleep)
    server.add(BUSY, Scripted(text="second"), Scripted(text="first, again"))
    async with asyncio.TaskGroup() as group:

        async def hear() -> str:
            pieces = [piece async for piece in model.stream(REQUEST)]
            return "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))

        first = group.create_task(hear())
        await asleep.wait()
        assert await hear() == "second"
        awake.set()
    assert first.result() == "first, again"
    await model.close()


async def test_closing_it_closes_the_call_and_frees_the_place(alone: House) -> None:
    hanging = Scripted(text="a b", pieces=2, after_pieces=1, hang=True)
    alone.server.add(hanging, hanging, Scripted(text="well"))
    for _ in range(2):
        async with aclosing(alone.model.stream(REQUEST)) as pieces:
            await anext(pieces)
        await alone.server.until_open(0)
    assert kinds(await alone.hear()) == "TextDelta ModelResponse"


@given(tries=st.integers(1, 200), chance=st.floats(0, 1, exclude_max=True))
def test_waits_stay_within_their_bounds(tries: int, chance: float) -> None:
    patience = RetryPolicy()
    assert 0.25 <= patience.wait(tries, ModelUnreachable("x"), chance) <= patience.longest_seconds
    asked = patience.wait(tries, ModelOverloaded("x", retry_after=20.0), chance)
    assert 20.0 <= asked <= patience.longest_seconds

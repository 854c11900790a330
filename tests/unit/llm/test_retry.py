"""The retry layer, with a real client against a scripted server."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from internal.agent.domain.errors import (
    ContextTooLong,
    ModelError,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnreachable,
)
from internal.agent.domain.messages import Text, user_message
from internal.agent.ports.fair_slots import PERSON
from internal.agent.ports.llm import (
    ModelRequest,
    ModelResponse,
    ModelStreamEvent,
    RetryScheduled,
    StreamRestarted,
    TextDelta,
)
from internal.llm.anthropic import AnthropicModel
from internal.llm.retry import MAX_LOADING_SECONDS, RetryingModel, RetryPolicy, Route
from internal.llm.transport import ApiKey
from tests.support.anthropic_server import Fault, ScriptedAnthropic
from tests.support.anthropic_server import Reply as Scripted

REQUEST = ModelRequest("claude-first", "", (user_message("hi"),))
BUSY = Scripted(fault=Fault("status", status=529))
BROKEN = Scripted(
    text="one two three", pieces=3, fault=Fault("overloaded_in_stream", after_pieces=2)
)


class RetryingSetup:
    """A retrying model with routes that share one scripted server and differ in the model name."""

    def __init__(self, server: ScriptedAnthropic, *, fallbacks: tuple[str, ...] = ()) -> None:
        self.waits: list[float] = []
        self.server = server
        self.client = AnthropicModel(ApiKey("key-for-tests"), base_url=server.base_url)
        routes = [Route(self.client), *(Route(self.client, name) for name in fallbacks)]
        self.model = RetryingModel(
            routes, policy=RetryPolicy(retries=3), concurrency=2, sleep=self._sleep
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def collect(self, request: ModelRequest = REQUEST) -> list[ModelStreamEvent]:
        return [piece async for piece in self.model.stream(request)]

    @property
    def models_called(self) -> list[str]:
        return [request["model"] for request in self.server.requests]


@pytest.fixture
async def server() -> AsyncIterator[ScriptedAnthropic]:
    async with ScriptedAnthropic() as fake:
        yield fake


@pytest.fixture
async def with_fallbacks(server: ScriptedAnthropic) -> AsyncIterator[RetryingSetup]:
    built = RetryingSetup(server, fallbacks=("claude-second", "claude-third"))
    yield built
    await built.model.close()


@pytest.fixture
async def single(server: ScriptedAnthropic) -> AsyncIterator[RetryingSetup]:
    built = RetryingSetup(server)
    yield built
    await built.model.close()


def kinds(pieces: list[ModelStreamEvent]) -> str:
    """Return the types of the pieces without the announced retries."""
    return " ".join(type(p).__name__ for p in pieces if not isinstance(p, RetryScheduled))


def retries(pieces: list[ModelStreamEvent]) -> list[RetryScheduled]:
    return [piece for piece in pieces if isinstance(piece, RetryScheduled)]


async def test_successful_call_is_made_once(with_fallbacks: RetryingSetup) -> None:
    with_fallbacks.server.add(Scripted(text="well"))
    assert kinds(await with_fallbacks.collect()) == "TextDelta ModelResponse"
    assert (with_fallbacks.models_called, with_fallbacks.waits) == (["claude-first"], [])


async def test_failures_before_the_first_text_are_retried_with_growing_waits(
    with_fallbacks: RetryingSetup,
) -> None:
    drop = Scripted(fault=Fault("drop"))
    inside = Scripted(fault=Fault("overloaded_in_stream"))
    # sent twice: the server may have closed the kept connection before the request came
    with_fallbacks.server.add(BUSY, drop, drop, inside, Scripted(text="well"))
    pieces = await with_fallbacks.collect()
    assert kinds(pieces) == "TextDelta ModelResponse"
    assert [(each.reason, each.attempt) for each in retries(pieces)] == [
        ("overloaded", 2),
        ("unreachable", 3),
        ("overloaded", 4),
    ]
    assert [each.seconds for each in retries(pieces)] == with_fallbacks.waits
    assert with_fallbacks.models_called == ["claude-first"] * 5
    for wait, most in zip(with_fallbacks.waits, (0.5, 1.0, 2.0), strict=True):
        assert most / 2 <= wait <= most


def busy_for(*seconds: float) -> list[Scripted]:
    faults = [Fault("status", status=429, retry_after=wait) for wait in seconds]
    return [Scripted(fault=fault) for fault in faults]


async def test_retry_after_is_honoured(single: RetryingSetup) -> None:
    single.server.add(*busy_for(7, 300), Scripted(text="well"))
    await single.collect()
    assert single.waits == [7.0, 300.0]


async def test_wait_beyond_the_patience_of_the_request_is_not_begun(single: RetryingSetup) -> None:
    single.server.add(*busy_for(7, 300), Scripted(text="not used"))
    request = replace(REQUEST, patience_seconds=200)
    with pytest.raises(ModelOverloaded, match=r"It asks to wait until 20\d\d-.* \d\d:\d\d:\d\d"):
        _ = [piece async for piece in single.model.stream(request)]
    assert single.waits == [7.0]


LOADING = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}


def answered(status: int, body: object) -> Scripted:
    return Scripted(fault=Fault("status", status=status, body=json.dumps(body)))


async def test_a_model_that_is_being_loaded_is_waited_for_beyond_the_retries(
    single: RetryingSetup,
) -> None:
    single.server.add(*[answered(503, LOADING)] * 9, BUSY, Scripted(text="well"))
    pieces = await single.collect()
    assert [each.reason for each in retries(pieces)] == ["loading"] * 9 + ["overloaded"]
    assert kinds(pieces) == "TextDelta ModelResponse"


async def test_a_model_that_stays_loading_is_given_up(single: RetryingSetup) -> None:
    single.server.add(*[answered(503, LOADING)] * 99)
    with pytest.raises(ModelOverloaded, match="still loading"):
        await single.collect()
    assert MAX_LOADING_SECONDS / 2 < sum(single.waits) <= MAX_LOADING_SECONDS + 200


async def test_a_model_that_is_being_loaded_is_not_waited_for_long_before_a_fallback(
    with_fallbacks: RetryingSetup,
) -> None:
    with_fallbacks.server.add(*[answered(503, LOADING)] * 4, Scripted(text="from another"))
    reply = (await with_fallbacks.collect())[-1]
    assert with_fallbacks.models_called == ["claude-first"] * 4 + ["claude-second"]
    assert isinstance(reply, ModelResponse)
    assert (reply.origin, reply.instead_of) == ("anthropic:claude-second", "claude-first")


async def test_an_account_without_credit_is_passed_on_without_a_retry(
    with_fallbacks: RetryingSetup,
) -> None:
    broke = answered(402, {"error": {"message": "Insufficient Balance"}})
    filtered = answered(400, {"error": {"message": "Content Exists Risk"}})
    with_fallbacks.server.add(broke, filtered, Scripted(text="from the third"))
    await with_fallbacks.collect()
    assert with_fallbacks.models_called == ["claude-first", "claude-second", "claude-third"]
    assert with_fallbacks.waits == []


async def test_fallback_is_used_instead_of_a_long_wait(with_fallbacks: RetryingSetup) -> None:
    with_fallbacks.server.add(*busy_for(31), Scripted(text="from another"))
    await with_fallbacks.collect()
    assert with_fallbacks.models_called == ["claude-first", "claude-second"]
    assert with_fallbacks.waits == []


async def test_rejected_output_limit_is_lowered_once_and_kept(single: RetryingSetup) -> None:
    said = "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for x"
    too_large = Scripted(fault=Fault("status", status=400, message=said))
    single.server.add(too_large, Scripted(text="well"), Scripted(text="again"))
    for _ in range(2):
        assert kinds(await single.collect()) == "TextDelta ModelResponse"
    assert [request["max_tokens"] for request in single.server.requests] == [8192, 4096, 4096]
    single.server.add(too_large)
    with pytest.raises(ModelRejected):
        await single.collect()


async def test_last_error_is_raised_after_the_last_retry(single: RetryingSetup) -> None:
    single.server.add(*[BUSY] * 9)
    with pytest.raises(ModelOverloaded, match="Overloaded"):
        await single.collect()
    assert len(single.models_called) == 4


async def test_a_retry_names_the_last_attempt_and_the_cause(single: RetryingSetup) -> None:
    single.server.add(BUSY, Scripted(text="whole"))
    (again,) = retries(await single.collect())
    assert (again.attempt, again.attempts) == (2, 4)
    assert "Overloaded" in again.cause


async def test_failure_after_the_first_text_restarts_the_stream_once(single: RetryingSetup) -> None:
    single.server.add(BROKEN, Scripted(text="whole", pieces=2))
    pieces = await single.collect()
    assert kinds(pieces) == "TextDelta StreamRestarted TextDelta ModelResponse"
    assert isinstance(pieces[1], StreamRestarted)
    assert "Overloaded" in pieces[1].reason
    assert retries(pieces) == pieces[2:3]
    reply = pieces[-1]
    assert isinstance(reply, ModelResponse)
    assert reply.parts == (Text("whole"),)


async def test_second_failure_after_text_is_raised(single: RetryingSetup) -> None:
    single.server.add(BROKEN, BROKEN, Scripted(text="not used"))
    pieces: list[ModelStreamEvent] = []
    with pytest.raises(ModelOverloaded):
        pieces.extend([piece async for piece in single.model.stream(REQUEST)])
    assert len(single.models_called) == 2


async def test_cut_stream_is_restarted(single: RetryingSetup) -> None:
    cut = Scripted(
        text="a b",
        pieces=2,
        after_pieces=1,
        hold="received",
        fault=Fault("cut_after_bytes", bytes=0),
    )
    single.server.add(cut, Scripted(text="whole"))
    pieces: list[ModelStreamEvent] = []
    async for piece in single.model.stream(REQUEST):
        single.server.release(
            "received"
        )  # cut after receipt: a reset may overtake the bytes before it
        pieces.append(piece)
    assert kinds(pieces) == "TextDelta StreamRestarted TextDelta ModelResponse"


async def test_failures_after_a_restart_are_retried(single: RetryingSetup) -> None:
    single.server.add(BROKEN, BUSY, BUSY, Scripted(text="whole"))
    assert kinds(await single.collect()) == "TextDelta StreamRestarted TextDelta ModelResponse"
    assert len(single.models_called) == 4


@pytest.mark.parametrize(
    ("status", "message", "error_type"),
    [
        (401, "no", ModelKeyRejected),
        (400, "no", ModelRejected),
        (400, "prompt is too long: 2 tokens > 1 maximum", ContextTooLong),
        (413, "no", ContextTooLong),
    ],
)
async def test_permanent_errors_are_raised_without_retry(
    with_fallbacks: RetryingSetup, status: int, message: str, error_type: type[ModelError]
) -> None:
    with_fallbacks.server.add(Scripted(fault=Fault("status", status=status, message=message)))
    with pytest.raises(error_type):
        await with_fallbacks.collect()
    assert (with_fallbacks.models_called, with_fallbacks.waits) == (["claude-first"], [])


async def test_fallbacks_are_tried_in_order_and_logged(
    with_fallbacks: RetryingSetup, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with_fallbacks.server.add(*[BUSY] * 4, *[BUSY] * 4, Scripted(text="third time lucky"))
    pieces = await with_fallbacks.collect()
    assert with_fallbacks.models_called == ["claude-first"] * 4 + ["claude-second"] * 4 + [
        "claude-third"
    ]
    assert kinds(pieces) == "TextDelta ModelResponse"
    reply = pieces[-1]
    assert isinstance(reply, ModelResponse)
    assert reply.model == "claude-third"
    logged = [record for record in caplog.records if "falling back" in record.message]
    assert [vars(record)["fallback"] for record in logged] == ["claude-second", "claude-third"]


@pytest.mark.parametrize(
    ("failures", "called", "instead_of"),
    [
        (0, ["claude-second"], "claude-first"),
        (4, [*["claude-second"] * 4, "claude-third"], "claude-first"),
        (8, [*["claude-second"] * 4, *["claude-third"] * 4, "claude-first"], ""),
    ],
)
async def test_the_fallback_that_a_request_names_is_asked_first(
    with_fallbacks: RetryingSetup, failures: int, called: list[str], instead_of: str
) -> None:
    with_fallbacks.server.add(*[BUSY] * failures, Scripted(text="well"))
    request = replace(REQUEST, origin="anthropic:claude-second")
    (*_, reply) = await with_fallbacks.collect(request)
    assert with_fallbacks.models_called == called
    assert isinstance(reply, ModelResponse)
    assert (reply.origin, reply.instead_of) == (f"anthropic:{called[-1]}", instead_of)


async def test_fallback_after_text_restarts_the_stream(with_fallbacks: RetryingSetup) -> None:
    with_fallbacks.server.add(BROKEN, BROKEN, Scripted(text="from another"))
    pieces = await with_fallbacks.collect()
    assert (
        kinds(pieces)
        == "TextDelta StreamRestarted TextDelta StreamRestarted TextDelta ModelResponse"
    )
    assert isinstance(pieces[4], StreamRestarted)
    assert "claude-second" in pieces[4].reason


async def test_last_error_is_raised_when_all_routes_fail(with_fallbacks: RetryingSetup) -> None:
    with_fallbacks.server.add(*[BUSY] * 8, *[Scripted(fault=Fault("drop"))] * 5)
    with pytest.raises(ModelUnreachable):
        await with_fallbacks.collect()
    assert len(with_fallbacks.server.requests) == 13  # one twice, over a kept connection


async def test_concurrent_calls_are_limited(single: RetryingSetup) -> None:
    single.server.add(*[Scripted(text="well", hold="go")] * 5)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(single.collect()) for _ in range(5)]
        await single.server.until_open(2)
        assert single.server.count == 2
        single.server.release("go")
    assert [kinds(task.result()) for task in tasks] == ["TextDelta ModelResponse"] * 5


async def test_waiting_retry_does_not_count_as_a_concurrent_call(server: ScriptedAnthropic) -> None:
    asleep, awake = asyncio.Event(), asyncio.Event()

    async def sleep(_seconds: float) -> None:
        asleep.set()
        await awake.wait()

    client = AnthropicModel(ApiKey("key-for-tests"), base_url=server.base_url)
    model = RetryingModel([Route(client)], concurrency=1, sleep=sleep)
    server.add(BUSY, Scripted(text="second"), Scripted(text="first, again"))
    async with asyncio.TaskGroup() as group:

        async def collect() -> str:
            pieces = [piece async for piece in model.stream(REQUEST)]
            return "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))

        first = group.create_task(collect())
        await asleep.wait()
        assert await collect() == "second"
        awake.set()
    assert first.result() == "first, again"
    await model.close()


async def test_closing_the_stream_closes_the_call_and_frees_its_place(
    single: RetryingSetup,
) -> None:
    hanging = Scripted(text="a b", pieces=2, after_pieces=1, hang=True)
    single.server.add(hanging, hanging, Scripted(text="well"))
    for _ in range(2):
        async with aclosing(single.model.stream(REQUEST)) as pieces:
            await anext(pieces)
        await single.server.until_open(0)
    assert kinds(await single.collect()) == "TextDelta ModelResponse"


@given(tries=st.integers(1, 200), chance=st.floats(0, 1, exclude_max=True))
def test_waits_stay_within_their_bounds(tries: int, chance: float) -> None:
    policy = RetryPolicy()
    assert 0.25 <= policy.wait(tries, ModelUnreachable("x"), chance) <= policy.max_seconds
    wait = policy.wait(tries, ModelOverloaded("x", retry_after=20.0), chance)
    assert 20.0 <= wait <= policy.max_seconds
    assert policy.wait(tries, ModelOverloaded("x", retry_after=40.0), chance) == 40.0


async def test_the_calls_of_a_person_keep_nobody_waiting(single: RetryingSetup) -> None:
    hanging = Scripted(text="a b", pieces=2, after_pieces=1, hang=True)
    single.server.add(hanging, Scripted(text="well"), Scripted(text="at last"))

    async def collect(person: str) -> str:
        PERSON.set(person)
        return kinds(await single.collect())

    first = asyncio.create_task(collect("anna"))
    await single.server.until_open(1)
    waiting = asyncio.create_task(collect("anna"))
    assert await asyncio.create_task(collect("ben")) == "TextDelta ModelResponse"
    assert not waiting.done()
    first.cancel()
    assert await waiting == "TextDelta ModelResponse"

"""Completions without a run: limits of people, their usage, and the order of messages."""

from pathlib import Path

import pytest

from internal.agent.app.plain_completions import (
    DailyLimitReached,
    PlainAnswer,
    PlainRequest,
    alternating,
)
from internal.agent.domain.errors import Forbidden
from internal.agent.domain.messages import Message, Text, user_message
from internal.agent.domain.principals import Principal
from internal.agent.domain.usage import RunLimits
from tests.support.agent_app import Core, open_agent
from tests.support.anthropic_server import Reply

ANN = Principal("ann", "Ann", frozenset({"talk"}))
REQUEST = PlainRequest("", (user_message("a title, please"),))


async def answered(here: Core, person: Principal, limits: RunLimits) -> PlainAnswer:
    *pieces, answer = [each async for each in here.services.plain.stream(REQUEST, person, limits)]
    assert isinstance(answer, PlainAnswer)
    assert answer.text == "".join(str(piece) for piece in pieces)
    return answer


async def test_what_a_person_used_counts_for_the_limit_of_the_day(home: Path) -> None:
    used = {"input_tokens": 70, "output_tokens": 30}
    script = [Reply(text="A title", pieces=2, usage=used, times=3)]
    limits = RunLimits(max_daily_tokens=200)
    async with open_agent(home, script) as here:
        for _ in range(2):
            assert (await answered(here, ANN, limits)).text == "A title"
        with pytest.raises(DailyLimitReached, match="limit for today"):
            await answered(here, ANN, limits)
        other = Principal("ben", "Ben", frozenset({"talk"}))
        assert (await answered(here, other, limits)).usage.total == 100
        with pytest.raises(Forbidden):
            await answered(here, Principal("eve"), limits)
        sums = await here.services.gateway.queries.usage(
            Principal("local", roles=frozenset({"owner"})), "model"
        )
        assert [(each.key, each.usage.total) for each in sums] == [("claude-x", 300)]


def test_roles_alternate_and_the_user_begins() -> None:
    reply = Message("assistant", (Text("Hello."),))
    joined = alternating([reply, user_message("one"), user_message("two"), reply])
    assert [each.role for each in joined] == ["user", "assistant", "user", "assistant"]
    assert [part.text for part in joined[2].parts if isinstance(part, Text)] == ["one", "two"]
    assert alternating([user_message("one")]) == (user_message("one"),)

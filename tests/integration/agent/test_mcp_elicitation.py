"""Questions of MCP servers during a call: asked, answered, refused, and after a restart."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.principals import LOCAL_OWNER
from tests.support.agent_app import Core, open_agent, sound
from tests.support.agent_tasks import late_sweep
from tests.support.anthropic_server import Call, Reply, seen_in
from tests.support.mcp_agent import NO_GATES, define, payloads, review, sdk_entry
from tests.support.mcp_http import serve_sdk
from tests.support.mcp_servers import hostile_entry

pytestmark = pytest.mark.usefixtures("served")
DONE = Reply("done")


@pytest.fixture
async def served(home: Path) -> AsyncGenerator[None]:
    """Define the server of the SDK, which outlives the gateways of a test."""
    async with serve_sdk() as url:
        define(home, "tested", {"url": url, "allow_private_networks": True})
        yield


def calling(tool: str, server: str = "tested", **arguments: Any) -> list[Reply]:
    return [Reply(calls=[Call(f"mcp__{server}__{tool}", arguments)]), DONE]


def result_of(here: Core) -> str:
    return seen_in(here.model.requests[-1]).last_result


async def test_each_value_of_a_form_is_asked_and_the_call_continues(home: Path, work: Path) -> None:
    async with open_agent(home, calling("book", day="Monday"), NO_GATES) as here:
        await review(here, "tested")
        made = await here.submit("go", workspace=str(work))
        city = await here.asked(made)
        assert city["kind"] == "clarify"
        assert city["title"] == (
            "The MCP server “tested” asks: Which trip on Monday?\\u202e\\u001b[1m"
        )
        assert city["body"] == (
            "City (1 of 4): Where to. [at least 2 characters]\nThe MCP server “tested” asks this,"
            " not Larkspur. It receives your answer: enter no passwords or keys."
        )
        assert city["options"] == ["Decline to answer"]
        await here.answer(city["question_id"], "text", "Oslo")
        seats = await here.asked(made, 2)
        await here.answer(seats["question_id"], "text", "7")
        again = await here.asked(made, 3)
        assert again["body"].startswith("That does not fit: 1 to 4.\n")
        await here.answer(again["question_id"], "text", "2")
        fare = await here.asked(made, 4)
        assert fare["options"] == ["basic", "flex", "Decline to answer"]
        await here.answer(fare["question_id"], "text", choices=[2])
        insured = await here.asked(made, 5)
        assert insured["options"] == ["Yes", "No", "Use the default: No", "Decline to answer"]
        await here.answer(insured["question_id"], "text", "yes")
        events = await here.end_of(made)
        assert "Monday: 2 flex seats to Oslo, insured: True" in result_of(here)
    sound(events)
    assert len(payloads(events, "tool.started")) == 1
    assert len(payloads(events, "tool.completed")) == 1


@pytest.mark.parametrize(
    ("decision", "more"),
    [("reject", {}), ("text", {"choices": [1]}), ("text", {"text": "decline to answer"})],
)
@pytest.mark.first_rows(1)
async def test_a_refusal_reaches_the_server(
    home: Path, work: Path, decision: str, more: dict[str, Any]
) -> None:
    async with open_agent(home, calling("book", day="Monday"), NO_GATES) as here:
        await review(here, "tested")
        made = await here.submit("go", workspace=str(work))
        asked = await here.asked(made)
        await here.answer(asked["question_id"], decision, **more)
        sound(await here.end_of(made))
        assert "nothing was booked: decline" in result_of(here)


async def test_a_question_that_expires_declines(home: Path, work: Path) -> None:
    async with open_agent(home, calling("book", day="Monday"), NO_GATES) as here:
        await review(here, "tested")
        made = await here.submit("go", workspace=str(work))
        await here.asked(made)
        assert await late_sweep(here).expire_questions() == 1
        here.services.dispatcher.wake()
        sound(await here.end_of(made))
        assert "nothing was booked: decline" in result_of(here)


async def test_the_third_answer_that_does_not_fit_declines(home: Path, work: Path) -> None:
    async with open_agent(home, calling("book", day="Monday"), NO_GATES) as here:
        await review(here, "tested")
        made = await here.submit("go", workspace=str(work))
        for number in range(1, 4):
            asked = await here.asked(made, number)
            await here.answer(asked["question_id"], "text", "x")
        await here.end_of(made)
        assert "nothing was booked: decline" in result_of(here)


async def test_without_people_the_server_is_declined_at_once(home: Path, work: Path) -> None:
    async with open_agent(home, calling("book", day="Monday"), NO_GATES) as here:
        await review(here, "tested")
        made = await here.submit("go", workspace=str(work), people=False)
        events = await here.end_of(made)
        assert "nothing was booked: decline" in result_of(here)
    (ended,) = payloads(events, "tool.completed")
    assert ended["metadata"]["declined"] == ["nobody can be asked in this run"]
    assert payloads(events, "question.asked") == []


async def test_a_server_may_ask_again_with_the_state_of_the_first_answer(
    home: Path, work: Path
) -> None:
    async with open_agent(home, calling("book_surely", day="Monday"), NO_GATES) as here:
        await review(here, "tested")
        made = await here.submit("go", workspace=str(work))
        for number, text in enumerate(["Oslo", "2", "flex", "no"], 1):
            await here.answer((await here.asked(made, number))["question_id"], "text", text)
        last = await here.asked(made, 5)
        assert "Really Oslo?" in last["title"]
        await here.answer(last["question_id"], "approve")
        sound(await here.end_of(made))
        assert "Monday: Oslo, sure: True" in result_of(here)


async def test_two_calls_that_ask_are_asked_one_after_the_other(home: Path, work: Path) -> None:
    calls = [
        Call("mcp__tested__book", {"day": "Monday"}),
        Call("mcp__tested__add", {"a": 2, "b": 3}),
        Call("mcp__tested__book", {"day": "Tuesday"}),
    ]
    async with open_agent(home, [Reply(calls=calls), DONE], NO_GATES) as here:
        await review(here, "tested")
        made = await here.submit("go", workspace=str(work))
        titles = []
        for number in (1, 2):
            asked = await here.asked(made, number)
            titles.append(asked["title"])
            await here.answer(asked["question_id"], "reject")
        events = await here.end_of(made)
    assert ["Monday" in titles[0], "Tuesday" in titles[1]] == [True, True]
    sound(events)
    assert len(payloads(events, "tool.completed")) == 3


async def test_an_address_is_shown_and_never_opened(home: Path, work: Path) -> None:
    async with open_agent(home, calling("sign_in"), NO_GATES) as here:
        await review(here, "tested")
        made = await here.submit("go", workspace=str(work))
        asked = await here.asked(made)
        assert "Open this address yourself: https://example.com/in?a=1" in asked["body"]
        assert asked["options"] == ["Done", "Decline to answer"]
        await here.answer(asked["question_id"], "text", choices=[1])
        await here.end_of(made)
        assert "accept" in result_of(here)


@pytest.mark.slow
async def test_a_question_of_a_server_survives_a_restart(home: Path, work: Path) -> None:
    define(home, "own", sdk_entry())
    async with open_agent(home, calling("book", "own", day="Monday"), NO_GATES) as here:
        await review(here, "own")
        made = await here.submit("go", workspace=str(work))
        first = await here.asked(made)
    async with open_agent(home, [DONE], NO_GATES) as here:
        await here.answer(first["question_id"], "text", "Oslo")
        second = await here.asked(made, 2)
    async with open_agent(home, [DONE], NO_GATES) as here:
        await here.answer(second["question_id"], "text", "2")
        for number, text in enumerate(["basic", "no"], 3):
            await here.answer((await here.asked(made, number))["question_id"], "text", text)
        sound(await here.end_of(made))
        assert "Monday: 2 basic seats to Oslo, insured: False" in result_of(here)


async def test_stopping_a_run_that_waits_closes_the_call(home: Path, work: Path) -> None:
    async with open_agent(home, calling("book", day="Monday"), NO_GATES) as here:
        await review(here, "tested")
        made = await here.submit("go", workspace=str(work))
        await here.asked(made)
        await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web")
        sound(await here.end_of(made))


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("come_back", {"ends": True}, "was called"),
        ("come_back", {"ends": False}, "answered with something that is no result"),
        ("ask_model", {}, "asks for sampling/createMessage, not offered"),
    ],
)
@pytest.mark.first_rows(1)
async def test_what_needs_no_person_asks_nobody(
    home: Path, work: Path, tool: str, arguments: dict[str, Any], text: str
) -> None:
    async with open_agent(home, calling(tool, **arguments), NO_GATES) as here:
        await review(here, "tested")
        made = await here.submit("go", workspace=str(work))
        events = await here.end_of(made)
        assert text in result_of(here)
    assert payloads(events, "question.asked") == []


async def older(here: Core, work: Path) -> Submitted:
    """Start a run that calls a server of protocol 2025-11-25, which asks during the call."""
    await review(here, "older")
    return await here.submit("go", workspace=str(work))


async def test_an_older_server_waits_within_the_call(home: Path, work: Path) -> None:
    define(home, "older", {**hostile_entry("asking"), "idle_seconds": 1})
    async with open_agent(home, calling("ask", "older"), NO_GATES) as here:
        made = await older(here, work)
        asked = await here.asked(made)
        assert asked["title"] == "The MCP server “older” asks: Your name? "
        await here.answer(asked["question_id"], "text", "Ada")
        sound(await here.end_of(made))
        assert '{"action": "accept", "content": {"name": "Ada"}}' in result_of(here)


async def test_an_older_server_gets_a_refusal(home: Path, work: Path) -> None:
    define(home, "older", hostile_entry("asking"))
    async with open_agent(home, calling("ask", "older"), NO_GATES) as here:
        made = await older(here, work)
        await here.answer((await here.asked(made))["question_id"], "reject")
        await here.end_of(made)
        assert '{"action": "decline"}' in result_of(here)


async def test_the_call_of_an_older_server_does_not_survive_a_restart(
    home: Path, work: Path
) -> None:
    define(home, "older", hostile_entry("asking"))
    async with open_agent(home, calling("ask", "older"), NO_GATES) as here:
        made = await older(here, work)
        asked = await here.asked(made)
    async with open_agent(home, [DONE], NO_GATES) as here:
        await here.answer(asked["question_id"], "text", "Ada")
        sound(await here.end_of(made))
        assert "its connection is closed: the outcome of the call is unknown" in result_of(here)


async def test_an_older_server_with_several_calls_is_declined(home: Path, work: Path) -> None:
    state = home / "state"
    define(home, "older", hostile_entry("asking", state))
    calls = [Call("mcp__older__hang", {}), Call("mcp__older__ask", {"after": "hangs"})]
    async with open_agent(home, [Reply(calls=calls), DONE], NO_GATES) as here:
        made = await older(here, work)
        events = await here.until(
            made.session_id, lambda each: each["event"] == "workflow.tool.completed"
        )
        ended = payloads(events, "tool.completed")[0]
        result, declined = ended["result"], ended["metadata"]["declined"]
        await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web")
        await here.end_of(made)
    assert "decline" in result
    assert "which was declined: it cannot be shown, or several calls" in result
    assert declined == ["several of its calls run, and it does not say which of them asks"]
    assert payloads(events, "question.asked") == []

"""Opaque fields go back to their provider only, and reach neither people nor the log."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from tests.support.agent_app import Core, open_agent
from tests.support.anthropic_server import ScriptedAnthropic
from tests.support.openai_server import Manners, ScriptedOpenAI
from tests.support.scripted_model import Call, Fault, Reply, ScriptedServer
from tests.support.working_web_app import serve_gateway

CANARY = "Y2FuYXJ5IG9mIHRoZSBtb2RlbA"
WIRE_ID = "functions.list_dir:7"
SIGNED = {"google": {"thought_signature": CANARY}}
DETAILS = [{"type": "reasoning.encrypted", "data": CANARY, "id": CANARY, "index": 0}]
LIST = Call("list_dir", {"path": "."}, id=WIRE_ID, opaque={"extra_content": SIGNED})
LISTS = Reply(text="I look.", thinking="The folder first.", calls=[LIST])
DONE = Reply(text="It is there.", thinking="There.")
OWN = Manners(opaque=True)


def openai_settings(model: ScriptedServer, name: str = "gemini-3-x") -> dict[str, str]:
    return {
        "LARKSPUR_AGENT__GATES": "off",
        "LARKSPUR_LLM__PROVIDER": "openai",
        "LARKSPUR_LLM__MODEL": name,
        "OPENAI_BASE_URL": model.base_url,
        "OPENAI_API_KEY": "sk-for-tests-0123456789",
    }


def written(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of the model with calls."""
    return [each for each in request["messages"] if each.get("tool_calls")]


async def seen_by_people(here: Core, home: Path, session: str) -> str:
    """Return the responses of the API about a session."""
    async with serve_gateway(here, home) as (_, client):
        replies = [
            await client.get(f"/api/sessions/{session}{what}")
            for what in ("", "/messages", "/events?limit=500")
        ]
    assert [reply.status for reply in replies] == [200, 200, 200]
    assert "list_dir" in str(replies[1].json())
    return "".join(json.dumps(reply.json()) for reply in replies)


async def test_fields_of_the_model_go_back_to_it_and_to_nobody_else(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    first = Reply(
        text="I look.", thinking="Where?", calls=[LIST], opaque={"reasoning_details": DETAILS}
    )
    async with ScriptedOpenAI([first, DONE, DONE, DONE], manners=OWN) as model:
        async with open_agent(home, [], openai_settings(model), model) as here:
            made = await here.submit("Where is it?")
            shown = json.dumps(await here.end_of(made))
            again = await here.submit("And now?", made.session_id)
            await here.end_of(again)
            fork = await here.services.gateway.fork_session(
                made.session_id, LOCAL_OWNER, "web", run_id=again.run_id
            )
            await here.end_of(await here.submit("And there?", fork.id))
            shown += await seen_by_people(here, home, fork.id)
        assert len(model.requests) == 4
        for request in model.requests[1:]:
            (message,) = written(request)
            assert message["reasoning_details"] == DETAILS
            (call,) = message["tool_calls"]
            assert (call["id"], call["extra_content"]) == (WIRE_ID, SIGNED)
            (result,) = (each for each in request["messages"] if each["role"] == "tool")
            assert result["tool_call_id"] == WIRE_ID
    logged = "".join(str(vars(record)) for record in caplog.records)
    for text in (shown, logged):
        assert CANARY not in text
        assert WIRE_ID not in text


async def test_the_signature_of_an_answer_goes_back_like_that_of_a_call(home: Path) -> None:
    said = Reply(text="It is there.", thinking="Hm.", opaque={"extra_content": SIGNED})
    async with ScriptedOpenAI([said, DONE, DONE], manners=OWN) as model:
        async with open_agent(home, [], openai_settings(model), model) as here:
            made = await here.submit("Where is it?")
            shown = json.dumps(await here.end_of(made))
            await here.end_of(await here.submit("And now?", made.session_id))
        async with open_agent(home, [], openai_settings(model, "gpt-x"), model) as here:
            await here.end_of(await here.submit("And there?", made.session_id))
        own, other = (
            next(m for m in request["messages"] if m["role"] == "assistant")
            for request in model.requests[1:]
        )
        assert own == {"role": "assistant", "content": "It is there.", "extra_content": SIGNED}
        assert other == {"role": "assistant", "content": "It is there."}
        assert CANARY not in shown


async def test_another_model_goes_on_without_them(home: Path) -> None:
    async with ScriptedOpenAI([LISTS, DONE, DONE], manners=OWN) as model:
        async with open_agent(home, [], openai_settings(model), model) as here:
            made = await here.submit("Where is it?")
            await here.end_of(made)
        async with open_agent(home, [], openai_settings(model, "gpt-x"), model) as here:
            await here.end_of(await here.submit("And now?", made.session_id))
        (message,) = written(model.requests[2])
        assert "extra_content" not in message["tool_calls"][0]
        assert CANARY not in json.dumps(model.requests[2])
    async with open_agent(home, [Reply(text="Here.")], {"LARKSPUR_AGENT__GATES": "off"}) as here:
        await here.end_of(await here.submit("And here?", made.session_id))
        (request,) = here.model.requests
    assert "I look." in json.dumps(request)
    assert CANARY not in json.dumps(request)


@pytest.mark.parametrize("is_first_claude", [True, False], ids=["from Claude", "to Claude"])
async def test_a_failed_run_is_continued_by_another_provider(
    home: Path, *, is_first_claude: bool
) -> None:
    """The test servers are stricter than each real one: they refuse everything that any refuses."""
    fails = Reply(fault=Fault("status", status=400, message="the server is broken", times=None))
    plain = {"LARKSPUR_AGENT__GATES": "off"}
    async with (
        ScriptedAnthropic([LISTS, fails] if is_first_claude else [DONE]) as claude,
        ScriptedOpenAI([DONE] if is_first_claude else [LISTS, fails], manners=OWN) as other,
    ):
        models = [(claude, plain), (other, openai_settings(other))]
        first, second = models if is_first_claude else models[::-1]
        async with open_agent(home, [], first[1], first[0]) as here:
            made = await here.submit("Where is it?")
            await here.end_of(made)
            assert (await here.run(made)).status == "failed"
        async with open_agent(home, [], second[1], second[0]) as here:
            going = await here.services.gateway.resume(made.task_id, LOCAL_OWNER, "web")
            (*_, end) = await here.end_of(going)
            assert end["payload"]["final_answer"] == "It is there."
        text = json.dumps(second[0].requests[-1])
        assert "I look." in text
        assert CANARY not in text
        assert "The folder first." not in text

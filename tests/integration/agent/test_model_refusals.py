"""Refusals of model servers: recorded answers through a real gateway to its events."""

import json
from pathlib import Path
from typing import Any

import pytest

from internal.i18n.runs import RunMessages
from tests.support.agent_app import open_agent, sound
from tests.support.anthropic_server import Fault, Reply, Rules, When

ANSWERS = Path(__file__).parents[2] / "unit/llm/refusals/answers"
FALLBACK = {"LARKSPUR_LLM__FALLBACKS": '["anthropic:claude-second"]'}


def recorded(row: str, times: int | None = None) -> Fault:
    """Return the fault that gives the recorded answer of a row, such as `deepseek/filtered`."""
    table, _, name = row.partition("/")
    content = json.loads((ANSWERS / f"{table}.json").read_text("utf-8"))[name]
    body = content["body"]
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return Fault("status", status=content["status"], body=text, times=times)


async def no_sleep(seconds: float) -> None:
    """Let the time of a wait pass at once."""


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("gemini/key", "model_key_refused"),
        ("openai/region", "model_region_refused"),
        ("mistral/model", "model_not_found"),
        ("qwen/model-access", "model_not_found"),
        ("openai/no-credit", "model_no_credit"),
        ("glm/no-credit", "model_no_credit"),
        ("xai/no-credit", "model_no_credit"),
        ("anthropic/usage-limit", "model_quota_used_up"),
        ("ark/quota", "model_quota_used_up"),
        ("gemini/quota-of-the-day", "model_quota_used_up"),
    ],
)
async def test_what_waiting_cannot_help_is_said_at_once(home: Path, row: str, code: str) -> None:
    retries = {"LARKSPUR_LLM__MAX_RETRIES": "3"}
    async with open_agent(home, [Reply(fault=recorded(row))], retries, sleep=no_sleep) as here:
        made = await here.submit("hi")
        events = await here.end_of(made)
        sound(events)
        final = events[-1]["payload"]
        assert (final["stop_reason"], final["error_code"]) == ("error", code)
        assert len(here.model.requests) == 1
        assert RunMessages("en").ended("error", code) != RunMessages("en").ended("error")


@pytest.mark.parametrize(
    ("row", "reason", "seconds"),
    [
        ("openai/rate", "rate_limited", 20),
        ("azure/rate", "rate_limited", 12),
        ("gemini/rate", "rate_limited", 17),
        ("tgi/loading", "loading", 20),
        ("llama_cpp/loading", "loading", 1),
        ("ollama/loading", "loading", 1),
        ("deepseek/busy", "overloaded", 1),
        ("proxies/bad-gateway", "overloaded", 1),
    ],
)
async def test_what_passes_is_waited_for_with_its_reason(
    home: Path, row: str, reason: str, seconds: int
) -> None:
    script = [Reply(text="at last", fault=recorded(row, times=1))]
    retries = {"LARKSPUR_LLM__MAX_RETRIES": "1"}
    async with open_agent(home, script, retries, sleep=no_sleep) as here:
        made = await here.submit("hi")
        events = await here.end_of(made)
        [wait] = [each["payload"] for each in events if each["event"] == "workflow.node.retry"]
        assert (wait["reason"], wait["seconds"]) == (reason, seconds)
        assert events[-1]["payload"]["final_answer"] == "at last"


async def test_overload_inside_a_stream_is_waited_for(home: Path) -> None:
    script = [Reply(text="at last", fault=Fault("overloaded_in_stream", after_pieces=0, times=1))]
    retries = {"LARKSPUR_LLM__MAX_RETRIES": "1"}
    async with open_agent(home, script, retries, sleep=no_sleep) as here:
        events = await here.end_of(await here.submit("hi"))
        assert events[-1]["payload"]["final_answer"] == "at last"


def second(row: str) -> Rules:
    return Rules(
        [
            Reply(fault=recorded(row), when=When(model="claude-x")),
            Reply(text="from the second", when=When(model="claude-second")),
        ]
    )


@pytest.mark.parametrize(
    "row",
    [
        "deepseek/filtered",
        "azure/filtered",
        "kimi/cycle",
        "kimi/no-credit",
        "openai/model",
        "groq/region",
        "llama_cpp/loading",
        "anthropic/overloaded",
    ],
)
async def test_another_model_answers_the_same_history_and_is_named(home: Path, row: str) -> None:
    async with open_agent(home, second(row), FALLBACK, sleep=no_sleep) as here:
        made = await here.submit("hi")
        events = await here.end_of(made)
        sound(events)
        final = events[-1]["payload"]
        assert final["final_answer"] == "from the second"
        assert (final["model"], final["instead_of"]) == ("claude-second", "claude-x")
        asked: list[dict[str, Any]] = here.model.requests
        assert {request["model"] for request in asked} == {"claude-x", "claude-second"}
        assert asked[-1]["messages"] == asked[0]["messages"]


async def test_a_refusal_of_the_request_itself_is_not_asked_of_another_model(home: Path) -> None:
    async with open_agent(home, second("gemini/key"), FALLBACK, sleep=no_sleep) as here:
        final = (await here.end_of(await here.submit("hi")))[-1]["payload"]
        assert final["error_code"] == "model_key_refused"
        assert "instead_of" not in final
        assert len(here.model.requests) == 1


async def test_the_first_model_is_not_named_where_it_answers(home: Path) -> None:
    async with open_agent(home, [Reply(text="mine")], FALLBACK) as here:
        final = (await here.end_of(await here.submit("hi")))[-1]["payload"]
        assert final["final_answer"] == "mine"
        assert {"model", "instead_of"}.isdisjoint(final)

"""Replies that are cut, refused or delayed, through a real gateway and real sockets."""

import logging
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.react.closing_prompts import CONTINUE_PROMPT
from internal.agent.ports.llm import MAX_REPLY_CHARACTERS
from tests.support.agent_app import open_agent, plan, sound
from tests.support.anthropic_server import Call, Fault, Reply, Rules, ScriptedAnthropic, When


def cut(text: str, **more: Any) -> Reply:
    return Reply(text=text, stop_reason="max_tokens", **more)


def shown(events: list[dict[str, Any]], node: str = "iter:1:say") -> str:
    """Return the text that a reader of the stream sees for a reply."""
    text = ""
    for each in events:
        if each.get("node_id") != node:
            continue
        if each["event"] == "partial":
            text = each["payload"]["text"]
        elif each["event"] == "workflow.node.output.delta":
            text += each["payload"]["text"]
    return text


async def test_a_cut_text_is_continued_as_one_answer(home: Path) -> None:
    script = [cut("One, two, ", pieces=2), cut("three, "), Reply(text="four.", pieces=2)]
    async with open_agent(home, script) as here:
        made = await here.submit("count")
        events = await here.end_of(made)
        sound(events)
        final = events[-1]["payload"]
        assert (final["final_answer"], final["stop_reason"]) == (
            "One, two, three, four.",
            "final_answer",
        )
        assert shown(events) == "One, two, three, four."
        asked = here.model.requests
        assert [len(request["messages"]) for request in asked] == [1, 3, 3]
        assert asked[2]["messages"][1]["content"][0]["text"] == "One, two, three, "
        assert asked[2]["messages"][2]["content"][0]["text"] == CONTINUE_PROMPT
        stored = await here.services.gateway.queries.messages(made.session_id, LOCAL_OWNER)
        assert [row.message.text for row in stored] == ["One, two, three, four.", "count"]
        assert final["usage"]["input_tokens"] == sum(
            each["payload"]["usage"]["input_tokens"]
            for each in events
            if each["event"] == "workflow.node.output.summary"
        )


async def test_a_continuation_that_breaks_off_keeps_the_text_before_it(home: Path) -> None:
    broken = Fault("error_in_stream", error="overloaded_error", after_pieces=1)
    script = [cut("One, "), Reply(text="tw", fault=broken), Reply(text="two.")]
    async with open_agent(home, script, {"LARKSPUR_LLM__MAX_RETRIES": "2"}) as here:
        made = await here.submit("count")
        events = await here.end_of(made)
        assert events[-1]["payload"]["final_answer"] == "One, two."
        assert shown(events) == "One, two."


async def test_an_answer_that_stays_cut_ends_with_max_output(home: Path) -> None:
    async with open_agent(home, [cut(f"{n} ") for n in range(9)]) as here:
        made = await here.submit("count")
        events = await here.end_of(made)
        sound(events)
        final = events[-1]["payload"]
        assert (final["stop_reason"], final["final_answer"]) == ("max_output", "0 1 2 3")
        assert "error" not in final
        assert len(here.model.requests) == 4
        run = await here.run(made)
        assert (run.status, run.stop_reason) == ("completed", "max_output")


async def test_an_endless_answer_is_cut_and_says_so(home: Path) -> None:
    async with open_agent(home, [Reply(text="word " * 410_000, times=2)]) as here:
        made = await here.submit("go on for ever")
        events = await here.end_of(made)
        sound(events)
        assert events[-1]["payload"]["stop_reason"] == "max_output"
        assert len((await here.run(made)).answer) >= MAX_REPLY_CHARACTERS
        assert len(here.model.requests) == 1


@pytest.mark.parametrize("raw", ['{"path": "a.md", "content": "lark', ""], ids=["half", "nothing"])
async def test_a_cut_call_is_described_as_cut(home: Path, raw: str) -> None:
    half = Call("write_file", raw=raw)
    usage = {"output_tokens": 77}
    script = [
        Reply(calls=[plan()]),
        Reply(calls=[half], stop_reason="max_tokens", usage=usage),
        Reply(text="ok"),
    ]

    def reply(request: dict[str, Any]) -> Reply:
        return script[len(request["messages"]) // 2]

    async with open_agent(home, reply) as here:
        made = await here.submit("write")
        events = await here.end_of(made)
        sound(events)
        (result,) = here.model.requests[-1]["messages"][-1]["content"]
        assert "your reply was cut at 77 tokens" in result["content"]
        assert "in parts" in result["content"]
        arrived = f"This arrived: {raw}" if raw else "Nothing arrived."
        assert result["content"].endswith(arrived)
        assert "JSON" not in result["content"]
        assert result["is_error"]


async def test_calls_that_stay_cut_end_with_a_final_answer(home: Path) -> None:
    def reply(request: dict[str, Any]) -> Reply:
        if request.get("tool_choice") == {"type": "none"}:
            return Reply(text="too long for me")
        return Reply(calls=[Call("write_file", raw='{"path": "a')], stop_reason="max_tokens")

    async with open_agent(home, reply) as here:
        made = await here.submit("write")
        events = await here.end_of(made)
        final = events[-1]["payload"]
        assert (final["stop_reason"], final["final_answer"]) == ("max_output", "too long for me")
        assert len(here.model.requests) == 4


async def test_a_reply_of_thoughts_only_is_asked_for_again(home: Path) -> None:
    script = [Reply(thinking="Hm.", stop_reason="max_tokens"), Reply(text="Seven.")]
    async with open_agent(home, script) as here:
        made = await here.submit("count")
        events = await here.end_of(made)
        assert events[-1]["payload"]["final_answer"] == "Seven."
        assert "cut at the limit" in here.model.requests[1]["messages"][-1]["content"][-1]["text"]


async def test_a_refusal_is_an_error_of_its_own_and_asked_once(home: Path) -> None:
    script = [Reply(text="I cannot", stop_reason="refusal"), Reply(text="not used")]
    extra = {
        "LARKSPUR_LLM__MAX_RETRIES": "3",
        "LARKSPUR_LLM__FALLBACKS": '["anthropic:claude-second"]',
    }
    async with open_agent(home, script, extra) as here:
        made = await here.submit("do harm")
        events = await here.end_of(made)
        sound(events)
        final = events[-1]["payload"]
        assert (final["stop_reason"], final["error_code"]) == ("error", "model_refused")
        assert final["error"] == "The model declined this request."
        assert len(here.model.requests) == 1


async def test_an_overloaded_model_is_waited_for_with_an_event(home: Path) -> None:
    busy = Fault("status", status=529, retry_after=0.2, times=2)
    async with open_agent(
        home, [Reply(text="at last", fault=busy)], {"LARKSPUR_LLM__MAX_RETRIES": "3"}
    ) as here:
        made = await here.submit("hi")
        events = await here.end_of(made)
        sound(events)
        notices = [each for each in events if each["event"] == "workflow.node.retry"]
        assert [each["payload"] for each in notices] == [
            {
                "node_id": "iter:1:say",
                "reason": "overloaded",
                "seconds": 1,
                "attempt": attempt,
                "attempts": 4,
                "cause": "Anthropic is unavailable (529): Overloaded",
            }
            for attempt in (2, 3)
        ]
        assert events[-1]["payload"]["final_answer"] == "at last"


async def test_a_wait_beyond_the_time_of_the_run_is_not_begun(home: Path) -> None:
    busy = Fault("status", status=429, retry_after=3000)
    async with open_agent(home, [Reply(fault=busy)], {"LARKSPUR_LLM__MAX_RETRIES": "3"}) as here:
        made = await here.submit("hi", people=False, timeout_seconds=600)
        events = await here.end_of(made)
        final = events[-1]["payload"]
        assert (final["stop_reason"], final["error_code"]) == ("error", "model_rate_limited")


async def test_a_run_whose_model_stays_overloaded_pauses_for_a_person(home: Path) -> None:
    busy = Fault("status", status=429, retry_after=3000, message="see https://10.0.0.7", times=1)
    async with open_agent(home, [Reply(text="at last", fault=busy)]) as here:
        made = await here.submit("hi")
        asked = await here.asked(made)
        assert asked["kind"] == "recovery"
        assert "10.0.0.7" not in str(asked)
        await here.answer(asked["question_id"])
        events = await here.end_of(made)
        assert events[-1]["payload"]["final_answer"] == "at last"


async def test_a_stream_of_garbage_ends_the_run_with_an_error(home: Path) -> None:
    garbage = Fault("garbage_in_stream", after_pieces=1)
    script = [Reply(text="a b", pieces=2, fault=garbage, times=9)]
    async with open_agent(home, script, {"LARKSPUR_LLM__REQUEST_TIMEOUT_SECONDS": "0.3"}) as here:
        made = await here.submit("hi", people=False)
        events = await here.end_of(made)
        assert events[-1]["payload"]["error_code"] == "model_unreachable"


@pytest.mark.parametrize(
    "fault",
    [
        Fault(
            "status", status=500, body='{"x": "https://10.0.0.7/v1?key=1", "request_id": "req_9"}'
        ),
        Fault("status", status=502, body="<html><h1>nginx at https://10.0.0.7</h1></html>"),
        Fault("status", status=400, message="Bad thing, see https://10.0.0.7/doc (req_9)."),
        Fault("status", status=403, message="Traceback (most recent call last): https://10.0.0.7"),
        Fault("drop"),
        Fault("garbage", body='{"error": "https://10.0.0.7"}\n\n'),
        Fault("error_in_stream", message='{"at": "https://10.0.0.7", "request_id": "req_9"}'),
    ],
    ids=["json", "page", "words", "trace", "drop", "garbage", "stream"],
)
async def test_internals_of_a_provider_reach_the_log_and_not_people(
    home: Path, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with open_agent(home, [Reply(fault=fault, times=9)]) as here:
        made = await here.submit("hi", people=False)
        events = await here.end_of(made)
        error = events[-1]["payload"]["error"]
    for internal in ("http", "req_", "{", "<", "Traceback", "127.0.0.1", "Error", "anthropic."):
        assert internal not in error
    details = [vars(record).get("detail", "") for record in caplog.records]
    assert any("10.0.0.7" in each or "127.0.0.1" in each or "valid" in each for each in details)


async def test_the_output_limit_is_that_of_the_model(home: Path) -> None:
    async with open_agent(
        home, [Reply(text="ok", times=2)], {"LARKSPUR_LLM__MODEL": "claude-sonnet-5"}
    ) as here:
        made = await here.submit("hi")
        await here.end_of(made)
        assert here.model.requests[0]["max_tokens"] == 100_000  # half of llm.context_window


async def test_a_run_stays_with_the_fallback_that_answered(home: Path) -> None:
    """The fallback also stays after a restart and for a cut text; the next run begins anew."""
    refuses = Fault("status", status=529, times=None)
    script = Rules(
        [
            Reply(fault=refuses, when=When(model="claude-x")),
            Reply(text="two.", when=When(last_text=CONTINUE_PROMPT)),
            cut("One, ", when=When(results=1)),
            Reply(calls=[Call("shell", {"command": "touch counted"})]),
        ]
    )
    environ = {
        "LARKSPUR_AGENT__GATES": "off",
        "LARKSPUR_LLM__FALLBACKS": '["anthropic:claude-second"]',
    }
    async with ScriptedAnthropic(script) as model:
        async with open_agent(home, [], environ, model) as here:
            made = await here.submit("count", permission_mode=Mode.ASK)
            asked = await here.asked(made)
        async with open_agent(home, [], environ, model) as here:
            await here.answer(asked["question_id"])
            events = await here.end_of(made)
            sound(events)
            called = [request["model"] for request in model.requests]
            assert called == ["claude-x", *["claude-second"] * 3]
            final = events[-1]["payload"]
            assert final["final_answer"] == "One, two."
            assert (final["model"], final["instead_of"]) == ("claude-second", "claude-x")
            await here.end_of(await here.submit("count", made.session_id))
            assert [request["model"] for request in model.requests[4:]] == called

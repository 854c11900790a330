"""Reasoning and calls in the text of replies, and repaired calls, through the whole gateway."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_app import Core, open_agent, sound
from tests.support.anthropic_server import Call, Reply, ScriptedAnthropic
from tests.support.openai_server import ScriptedOpenAI

OPENAI = {
    "LARKSPUR_LLM__PROVIDER": "openai",
    "LARKSPUR_LLM__MODEL": "gpt-4o",
    "OPENAI_API_KEY": "sk-test-0123456789",
    "LARKSPUR_AGENT__GATES": "off",
}
LIST = '<tool_call>\n{"name": "List-Dir", "arguments": {"path": null}}\n</tool_call>'


def shown(events: list[dict[str, Any]], end: str) -> str:
    """Return the text that a watcher has in the end of the nodes with this ending."""
    texts: dict[str, str] = {}
    for event in events:
        payload, node = event["payload"], event["payload"].get("node_id", "")
        if event["event"] == "workflow.node.output.delta" and node.endswith(end):
            texts[node] = texts.get(node, "") + payload["text"]
        elif event["event"] == "partial" and node.endswith(end):
            texts[node] = payload["text"]
    return "".join(texts.values())


async def run(home: Path, *script: Reply) -> tuple[list[dict[str, Any]], ScriptedOpenAI, Core]:
    async with ScriptedOpenAI(list(script)) as model:
        environ = {**OPENAI, "OPENAI_BASE_URL": model.base_url}
        async with open_agent(home, [], environ, model) as here:
            events = await here.end_of(await here.submit("hello"))
            sound(events)
            return events, model, here


@pytest.mark.parametrize("pieces", [1, 40])
@pytest.mark.parametrize("opening", ["<think>\n", ""])
async def test_reasoning_in_the_content_is_never_shown_as_the_answer(
    home: Path, opening: str, pieces: int
) -> None:
    text = f"{opening}The person waits.\n</think>\n\nThe answer is 42."
    events, _, _ = await run(home, Reply(text=text, pieces=pieces))
    assert events[-1]["payload"]["final_answer"] == "The answer is 42."
    assert shown(events, ":say") == "The answer is 42."
    assert shown(events, ":think").strip() == "The person waits."
    (summary,) = [e["payload"] for e in events if e["event"] == "workflow.node.output.summary"]
    assert (summary["content"], summary["thinking"]) == ("The answer is 42.", "The person waits.")


async def test_a_closing_tag_alone_is_expected_in_the_next_reply(home: Path) -> None:
    calls = [Call("list_dir")]
    first = Reply(text="One.\n</think>\nI look.", pieces=30, calls=calls)
    second = Reply(text="Two.\n</think>\nDone.", pieces=30)
    events, model, _ = await run(home, first, second)
    later = [e for e in events if e["payload"].get("node_id") == "iter:2:say"]
    assert "".join(e["payload"].get("text", "") for e in later if "k" in e["payload"]) == "Done."
    assert "One." not in json.dumps(model.requests[1]["messages"])


async def test_a_written_call_runs_and_its_text_is_not_shown(home: Path) -> None:
    first = Reply(text=f"I look.\n{LIST}", pieces=30)
    events, _, here = await run(home, first, Reply(text="Done."))
    (call,) = [e["payload"] for e in events if e["event"] == "workflow.tool.started"]
    assert (call["tool_name"], call["arguments"]) == ("list_dir", {})
    assert shown(events, ":say") == "I look.\nDone."
    assert here.services.repairs.by_model() == {"gpt-4o": {"null": 1, "written_call": 1}}


async def test_repaired_calls_are_decided_as_they_are_meant(home: Path) -> None:
    raw = '{}{"path": "a.txt", "content": {"x": 1}}</tool_call>'
    events, _, here = await run(
        home, Reply(calls=[Call("functions.write_file", raw=raw)]), Reply(text="Done.")
    )
    (call,) = [e["payload"] for e in events if e["event"] == "workflow.tool.started"]
    assert call["tool_name"] == "write_file"
    assert call["arguments"] == {"path": "a.txt", "content": '{\n  "x": 1\n}\n'}
    assert here.services.repairs.by_model() == {
        "gpt-4o": {
            "object_as_text": 1,
            "repeated_object": 1,
            "rest_after_object": 1,
            "tool_name": 1,
        }
    }


async def test_repairs_are_counted_over_all_processes(home: Path) -> None:
    call = Call("list_dir", {"path": None})
    script = [Reply(calls=[call]), Reply(text="Done.")]
    await run(home, *script)
    async with ScriptedOpenAI(script) as model:
        environ = {**OPENAI, "OPENAI_BASE_URL": model.base_url}
        async with open_agent(home, [], environ, model) as here:
            await here.end_of(await here.submit("hello"))
            services = here.services
            counted = await services.database.read(services.stores.call_repairs.list_all)
    assert [each[:4] for each in counted] == [("openai", "gpt-4o", "null", 2)]


async def test_a_paused_turn_is_continued(home: Path) -> None:
    script = [Reply(text="I search", stop_reason="pause_turn"), Reply(text=" and found it.")]
    async with open_agent(home, script, {"LARKSPUR_AGENT__GATES": "off"}) as here:
        events = await here.end_of(await here.submit("hello"))
        assert events[-1]["payload"]["final_answer"] == "I search and found it."
        assert isinstance(here.model, ScriptedAnthropic)
        assert "was paused" in json.dumps(here.model.requests[1]["messages"][-1])


async def test_sixty_equal_calls_are_not_made(home: Path) -> None:
    def reply(request: dict[str, Any]) -> Reply:
        if request.get("tool_choice") == {"type": "none"}:
            return Reply(text="It is always the same.")
        return Reply(calls=[Call("list_dir")])

    async with open_agent(home, reply, {"LARKSPUR_AGENT__GATES": "off"}) as here:
        events = await here.end_of(await here.submit("hello"))
        final = events[-1]["payload"]
        assert (final["error_code"], final["final_answer"]) == (
            "model_repeats",
            "It is always the same.",
        )
        assert len(here.model.requests) == 21
        assert "5 times in a row" in json.dumps(here.model.requests[5]["messages"])

"""Many MCP tools in runs: short prompts, search, calls under the real name, restarts."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.react.deferred_tools import MAX_TOOLS
from internal.agent.domain.react.turn import OUTCOME_UNKNOWN
from internal.agent.domain.text import text_tokens
from tests.support.agent_app import Core, open_agent
from tests.support.anthropic_server import ScriptedAnthropic
from tests.support.deferred_tools import accept, define
from tests.support.gateway_process import running_gateway
from tests.support.mcp_servers import until
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Call, Reply, Rules, ScriptedServer, When

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}
MAX_GROWTH = 2_000
TOOL = "mcp__many__tool_17"
USE = Call("use_tool", {"name": TOOL, "arguments": {"day": "Monday"}})
FIND = Call("find_tools", {"query": "herons of lake 17", "limit": 1})


async def go(here: Core, work: Path, mode: Mode = Mode.ALL, **more: Any) -> list[dict[str, Any]]:
    made = await here.submit("go", workspace=str(work), permission_mode=mode, **more)
    await here.end_of(made)
    return await here.durable(made)


def payloads(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [each["payload"] for each in events if each.get("event") == f"workflow.{name}"]


def fixed_part(request: dict[str, Any]) -> str:
    """Return the system prompt and the tools of a sent request, in either format."""
    system = [each for each in request["messages"] if each["role"] == "system"]
    return json.dumps([request.get("system", system), request["tools"]], ensure_ascii=False)


def tool_names(request: dict[str, Any]) -> list[str]:
    return [tool.get("function", tool)["name"] for tool in request["tools"]]


def sent_calls(request: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the calls in the messages of a request, in either format."""
    for message in request["messages"]:
        for call in message.get("tool_calls", ()):
            yield call["function"]["name"], json.loads(call["function"]["arguments"])
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_use":
                yield block["name"], block["input"]


@pytest.fixture(params=["anthropic", "openai"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def scripted(provider: str, script: list[Reply]) -> tuple[ScriptedServer, dict[str, str]]:
    """Return a scripted model of a provider, and the settings of it without its address."""
    if provider == "anthropic":
        return ScriptedAnthropic(script), NO_GATES
    environ = {
        "LARKSPUR_LLM__PROVIDER": "openai",
        "LARKSPUR_LLM__MODEL": "gpt-x",
        "OPENAI_API_KEY": "key-for-tests",
    }
    return ScriptedOpenAI(script), {**NO_GATES, **environ}


async def test_207_tools_are_found_used_and_approved_under_their_own_names(
    home: Path, work: Path, provider: str
) -> None:
    find, use = Reply(calls=[FIND]), Reply(calls=[USE])
    script = [Reply("plain"), find, use, Reply("done"), use, Reply("done again")]
    model, environ = scripted(provider, script)
    async with model:
        address = {"OPENAI_BASE_URL": model.base_url} if provider == "openai" else {}
        async with open_agent(home, [], {**environ, **address}, model) as here:
            await go(here, work)
            define(home)
            await accept(here)
            made = await here.submit("go", workspace=str(work), permission_mode=Mode.ASK)
            asked = await here.asked(made)
            rules = asked["calls"][0]["rules"]
            await here.answer(asked["question_id"], grant="rule", rules=rules)
            await here.end_of(made)
            events = await here.durable(made)
            again = await go(here, work, Mode.ASK)
        without, first, second, third, later, _ = model.requests

    grown, before = fixed_part(first), fixed_part(without)
    assert text_tokens(grown) - text_tokens(before) <= MAX_GROWTH
    assert len(grown.encode()) // 4 - len(before.encode()) // 4 <= MAX_GROWTH
    assert set(tool_names(first)) - set(tool_names(without)) == {"find_tools", "use_tool"}
    assert "- many (207 tools): tool_0, tool_1" in grown
    assert "mcp" not in before

    assert list(sent_calls(second)) == [("find_tools", FIND.input)]
    assert TOOL in str(second["messages"][-1])
    assert "Only records with this weather." in str(second["messages"][-1])
    assert list(sent_calls(third)) == [("find_tools", FIND.input), ("use_tool", USE.input)]
    assert list(sent_calls(later)) == []

    (item,) = asked["calls"]
    assert (item["tool"], item["what"]) == (TOOL, "tool 17 (many) · tool_17\nday: Monday")
    assert rules == [TOOL]
    started = payloads(events, "tool.started")
    assert [each["tool_name"] for each in started] == ["find_tools", TOOL]
    assert started[1]["arguments"] == {"day": "Monday"}
    assert started[1]["risk"] == "exec"
    found, result = payloads(events, "tool.completed")
    assert TOOL in found["result"]
    assert f"came from {TOOL}" in result["result"]
    (repeated,) = payloads(again, "tool.completed")
    assert repeated["tool_name"] == TOOL
    assert "error" not in repeated
    assert payloads(again, "question.asked") == []


async def test_a_call_in_the_text_is_one_once_its_tool_was_found(home: Path, work: Path) -> None:
    written = f'<tool_call>{{"name": "{TOOL}", "arguments": {{"day": "Monday"}}}}</tool_call>'
    script = [Reply(written), Reply(calls=[FIND]), Reply(written), Reply("done"), Reply(written)]
    model, environ = scripted("openai", [*script, Reply("done again")])
    async with (
        model,
        open_agent(home, [], {**environ, "OPENAI_BASE_URL": model.base_url}, model) as here,
    ):
        define(home)
        await accept(here)
        unknown = await go(here, work)
        made = await here.submit("go", workspace=str(work))
        await here.end_of(made)
        known = await here.durable(made)
        again = await here.submit("once more", made.session_id)
        await here.end_of(again)
        later = await here.durable(again)
    assert unknown[-1]["payload"]["final_answer"] == written
    started = [payloads(events, "tool.started") for events in (unknown, known, later)]
    names = [[each["tool_name"] for each in events] for events in started]
    assert names == [[], ["find_tools", TOOL], [TOOL]]
    assert known[-1]["payload"]["final_answer"] == "done"


async def test_a_few_tools_and_a_larger_share_are_listed_in_full(home: Path, work: Path) -> None:
    define(home, "few", "plain")
    share = {**NO_GATES, "LARKSPUR_MCP__MAX_SCHEMA_SHARE": "1"}
    async with open_agent(home, [Reply("done")], share) as here:
        await accept(here, "few")
        events = await go(here, work)
        names = tool_names(here.model.requests[0])
    (snapshot,) = payloads(events, "diagnostic.context_snapshot")
    assert snapshot["tools"] == len(names)
    assert "mcp__few__echo" in names
    assert "use_tool" not in names
    define(home)  # with 207 more, there are more than providers take
    async with open_agent(home, [Reply("done")], share) as here:
        await accept(here)
        await go(here, work)
        assert len(tool_names(here.model.requests[0])) <= MAX_TOOLS
        assert "use_tool" in tool_names(here.model.requests[0])
    none = {**NO_GATES, "LARKSPUR_MCP__MAX_SCHEMA_SHARE": "0"}
    async with open_agent(home, [Reply("done")], none) as here:
        await go(here, work)
        assert not any(name.startswith("mcp__") for name in tool_names(here.model.requests[0]))


async def test_a_profile_limits_what_is_found_and_used(home: Path, work: Path) -> None:
    define(home)
    define(home, "few", "plain")
    (home / "profiles").mkdir()
    (home / "profiles" / "few.yaml").write_text("tools: [read_file, mcp__few]\n")
    script = [Reply(calls=[FIND]), Reply(calls=[USE]), Reply("done")]
    environ = {**NO_GATES, "LARKSPUR_MCP__MAX_SCHEMA_SHARE": "0"}
    async with open_agent(home, script, environ) as here:
        await accept(here)
        await accept(here, "few")
        made = await here.submit("go", profile="few", workspace=str(work))
        await here.end_of(made)
        found, used = payloads(await here.durable(made), "tool.completed")
    assert "No tool has these words" in found["result"]
    assert "mcp__many" not in found["result"]
    assert f"there is no tool '{TOOL}'" in used["error"]


def settings_of(model: ScriptedServer) -> dict[str, str]:
    """Return the environment of a process that uses a scripted model."""
    return {
        **NO_GATES,
        "ANTHROPIC_BASE_URL": model.base_url,
        "ANTHROPIC_API_KEY": "key-for-tests",
        "LARKSPUR_LLM__MODEL": "claude-x",
    }


@pytest.mark.slow
async def test_a_question_about_a_used_tool_survives_kill_9(
    home: Path, work: Path, environ: dict[str, str]
) -> None:
    define(home)
    async with open_agent(home, [], NO_GATES) as here:
        await accept(here)
    rules = Rules(
        [
            Reply(calls=[FIND], when=When(all_results=0)),
            Reply(calls=[USE], when=When(all_results=1)),
            Reply(text="done", when=When(all_results=2)),
        ]
    )
    async with ScriptedAnthropic(rules) as model:
        environ |= settings_of(model)
        task = {"task": "go", "options": {"workspace": str(work), "permission_mode": "ask"}}
        async with running_gateway(environ, home, provider="anthropic") as first:
            made = (await first.client.post("/api/tasks", task)).json()
            async with first.client.stream(f"session_id={made['session_id']}") as stream:
                asked = (await stream.until("workflow.question.asked"))[-1].json()["payload"]
            first.process.send_signal(signal.SIGKILL)
            await first.process.wait()
        async with running_gateway(environ, home, provider="anthropic") as second:
            answer = f"/api/questions/{asked['question_id']}/answer"
            assert (await second.client.post(answer, {"decision": "approve"})).status == 200
            async with second.client.stream(f"session_id={made['session_id']}") as stream:
                events = [each.json() for each in await stream.until("workflow.result.final")]
        last = model.requests[-1]
    assert asked["calls"][0]["what"] == "tool 17 (many) · tool_17\nday: Monday"
    (result,) = (each for each in payloads(events, "tool.completed") if each["tool_name"] == TOOL)
    assert f"came from {TOOL}" in result["result"]
    assert list(sent_calls(last)) == [("find_tools", FIND.input), ("use_tool", USE.input)]
    assert "use_tool" in tool_names(last)


@pytest.mark.slow
async def test_a_used_tool_that_kill_9_interrupts_is_not_called_again(
    home: Path, work: Path, environ: dict[str, str]
) -> None:
    state = home / "state"
    share = {"LARKSPUR_MCP__MAX_SCHEMA_SHARE": "0"}
    define(home, "few", "plain", state)
    async with open_agent(home, [], {**NO_GATES, **share}) as here:
        await accept(here, "few")
    hang, echo = "mcp__few__hang", "mcp__few__echo"
    rules = Rules(
        [
            Reply(calls=[Call("use_tool", {"name": hang})], when=When(all_results=0)),
            Reply(calls=[Call("use_tool", {"name": echo})], when=When(all_results=1)),
            Reply(text="done", when=When(all_results=2)),
        ]
    )
    async with ScriptedAnthropic(rules) as model:
        environ |= {**settings_of(model), **share}
        task = {"task": "go", "options": {"workspace": str(work), "permission_mode": "all"}}
        async with running_gateway(environ, home, provider="anthropic") as first:
            made = (await first.client.post("/api/tasks", task)).json()
            await until(state.exists)
            first.process.send_signal(signal.SIGKILL)
            await first.process.wait()
        async with (
            running_gateway(environ, home, provider="anthropic") as second,
            second.client.stream(f"session_id={made['session_id']}") as stream,
        ):
            events = [each.json() for each in await stream.until("workflow.result.final")]
        last = model.requests[-1]
    results = {each["tool_name"]: each for each in payloads(events, "tool.completed")}
    assert OUTCOME_UNKNOWN in results[hang]["error"]
    assert f"came from {echo}" in results[echo]["result"]
    assert state.read_text() == "hangs\n"
    assert list(sent_calls(last)) == [
        ("use_tool", {"name": hang, "arguments": {}}),
        ("use_tool", {"name": echo, "arguments": {}}),
    ]

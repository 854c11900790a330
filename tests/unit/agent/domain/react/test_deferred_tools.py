"""Deferred tools: found with find_tools and called with use_tool under their own names."""

import math
from typing import Any

import msgspec
import pytest

from internal.agent.domain.events.types import ToolCompleted, ToolStarted
from internal.agent.domain.messages import ToolCall, user_message
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import Policy, call_hash
from internal.agent.domain.react.context_window import tools_tokens
from internal.agent.domain.react.deferred_tools import (
    MAX_FOUND_CHARS,
    MAX_LIST_CHARS,
    MAX_LISTED_SERVERS,
    argument_problem,
    find_tools,
    list_servers,
    split_deferred,
    unwrap_call,
    wrap_calls,
)
from internal.agent.domain.react.gates import DEFERRED_TOOL_SPECS, FindToolsCall
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.react.steps import Act
from internal.agent.domain.react.turn import OUTCOME_UNKNOWN, Turn
from internal.agent.domain.tasks import GateMode
from internal.agent.domain.text import MAX_NESTING
from internal.agent.domain.tools import ToolSpec
from internal.agent.store.checkpoints import CheckpointEncoder, decode_checkpoint
from tests.support.strict_provider import check_messages, check_request_encoding
from tests.support.turn_driver import (
    FULL,
    TOOLS,
    add_reply,
    call,
    last_results,
    make_answer,
    next_ask,
    next_question,
    read,
    run_calls,
    run_config,
    start_turn,
    stored_checkpoint,
)
from tests.support.weighed_messages import weighed

SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "labels": {"type": "array"}},
    "required": ["title"],
}
ISSUE = "mcp__github__create_issue"
DEFERRED = (
    ToolSpec(ISSUE, "Creates an issue.", SCHEMA, "exec"),
    ToolSpec("mcp__github__list_issues", "Lists issues.", {"type": "object"}, "read"),
    ToolSpec("mcp__time__now", "Returns the time.", {"type": "object"}, "read"),
)
ASK = Policy(mode=Mode.ASK)


def config(policy: Policy = FULL, gates: GateMode = "off", *, people: bool = True) -> RunConfig:
    return msgspec.structs.replace(
        run_config(gates, policy, people=people),
        tools=(*TOOLS, *DEFERRED_TOOL_SPECS),
        deferred=DEFERRED,
    )


def use(call_id: str, name: str, arguments: Any) -> ToolCall:
    return call(call_id, "use_tool", name=name, arguments=arguments)


def find(call_id: str, query: str, **more: Any) -> ToolCall:
    return call(call_id, "find_tools", query=query, **more)


def failure(events: list[Any]) -> ToolCompleted:
    (event,) = events
    assert isinstance(event, ToolCompleted)
    return event


def sent_calls(turn: Turn) -> list[ToolCall]:
    """Return the calls in the next request, which no provider rejects."""
    ask = next_ask(turn)
    check_messages(ask.messages)
    check_request_encoding(ask.messages, turn.config, final=ask.final)
    return [each for message in ask.messages for each in message.calls]


def test_tools_of_servers_are_deferred_above_the_limit_and_other_tools_never() -> None:
    known = (TOOLS[0], *DEFERRED, TOOLS[1])
    size = tools_tokens(DEFERRED)
    assert split_deferred(known, size) == (known, ())
    assert split_deferred(known, size - 1) == (TOOLS[:2], DEFERRED)
    assert split_deferred(TOOLS, 0) == (TOOLS, ())


def test_the_list_names_servers_and_tools() -> None:
    assert list_servers(DEFERRED) == (
        "- github (2 tools): create_issue, list_issues\n- time (1 tool): now"
    )
    assert list_servers(()) == ""


def test_the_list_has_as_many_names_as_fit() -> None:
    many = [ToolSpec(f"mcp__many__tool_{n}", "", {}, "exec") for n in range(5_000)]
    text = list_servers(many, 60)
    assert text == "- many (5000 tools): tool_0, tool_1, tool_2, tool_3, …"
    assert len(list_servers(many)) <= MAX_LIST_CHARS


def test_the_list_of_many_servers_is_bounded() -> None:
    tools = [
        ToolSpec(f"mcp__{'s' * 36}{n:04}__{'t' * 20}_{k}", "", {}, "exec")
        for n in range(1_000)
        for k in range(3)
    ]
    lines = list_servers(tools).splitlines()
    assert lines[-1] == f"- {1_000 - MAX_LISTED_SERVERS} more servers"
    assert len("\n".join(lines)) < 1.3 * MAX_LIST_CHARS


def test_a_search_returns_names_descriptions_and_schemas() -> None:
    first, *lines = find_tools(DEFERRED, FindToolsCall("create issues", 1)).splitlines()
    assert first == "1 of 2 tools that match:"
    assert [msgspec.json.decode(line) for line in lines] == [
        {"name": ISSUE, "description": "Creates an issue.", "arguments": SCHEMA}
    ]


def test_an_empty_or_vain_search_lists_the_servers() -> None:
    assert "- time (1 tool): now" in find_tools(DEFERRED, FindToolsCall(" "))
    text = find_tools(DEFERRED, FindToolsCall("volcano"))
    assert text.startswith("No tool has these words.")
    assert "- time (1 tool): now" in text


def test_a_result_of_a_search_is_bounded() -> None:
    large = {"type": "object", "title": "x" * 20_000}
    tools = [ToolSpec(f"mcp__a__t{n}", "Heron.", large, "exec") for n in range(5)]
    text = find_tools(tools, FindToolsCall("heron"))
    assert text.startswith("1 of 5 tools")
    huge = [ToolSpec("mcp__a__t", "Heron.", {"title": "x" * 65_000}, "exec")]
    assert len(find_tools(huge, FindToolsCall("heron"))) < MAX_FOUND_CHARS + 100


def test_a_search_is_answered_at_once_and_people_see_it() -> None:
    turn = start_turn(config(Policy(mode=Mode.ASK), "strict"))
    started, completed = add_reply(turn, find("a", "issue"))
    assert isinstance(started, ToolStarted)
    assert isinstance(completed, ToolCompleted)
    assert (started.tool_name, started.arguments) == ("find_tools", {"query": "issue"})
    assert started.iteration == 1
    assert ISSUE in str(completed.result)
    assert last_results(turn)["a"].text == completed.result


@pytest.mark.parametrize("limit", [0, 6, "x"])
def test_a_search_with_a_wrong_limit_is_refused(limit: Any) -> None:
    turn = start_turn(config())
    event = failure(add_reply(turn, find("a", "issue", limit=limit)))
    assert "$.limit" in str(event.error)


def test_a_used_tool_runs_under_its_own_name_and_is_sent_as_the_model_called_it() -> None:
    turn = start_turn(config())
    assert add_reply(turn, use("a", ISSUE, {"title": "Fog"}), read("b")) == []
    assert turn.next() == Act((ToolCall("a", ISSUE, {"title": "Fog"}), read("b")))
    run_calls(turn)
    assert turn.messages[-2].calls == (ToolCall("a", ISSUE, {"title": "Fog"}), read("b"))
    assert sent_calls(turn) == [use("a", ISSUE, {"title": "Fog"}), read("b")]


def test_a_deferred_tool_may_be_called_directly() -> None:
    turn = start_turn(config())
    add_reply(turn, ToolCall("a", ISSUE, {"title": "Fog"}))
    run_calls(turn)
    assert sent_calls(turn) == [use("a", ISSUE, {"title": "Fog"})]


def test_calls_of_earlier_runs_are_sent_as_the_run_has_the_tools() -> None:
    earlier = start_turn(config())
    add_reply(earlier, use("a", ISSUE, {"title": "Fog"}))
    run_calls(earlier)
    add_reply(earlier, "Done.")
    direct = start_turn(run_config(), earlier.messages)
    assert sent_calls(direct) == [ToolCall("a", ISSUE, {"title": "Fog"})]
    assert sent_calls(start_turn(config(), earlier.messages)) == [use("a", ISSUE, {"title": "Fog"})]


def test_arguments_that_are_sent_as_text_are_read() -> None:
    sent = use("a", ISSUE, '{"title": "Fog"}')
    assert unwrap_call(sent, DEFERRED) == ToolCall("a", ISSUE, {"title": "Fog"})
    assert unwrap_call(call("a", "use_tool", name="mcp__time__now"), DEFERRED) == ToolCall(
        "a", "mcp__time__now", {}
    )


def test_arguments_that_are_nested_too_deeply_are_malformed() -> None:
    deep = '{"title":' + "[" * (MAX_NESTING + 5) + "]" * (MAX_NESTING + 5) + "}"
    for text in (deep, deep.replace("[", "[" * 200).replace("]", "]" * 200)):
        turn = start_turn(config())
        failure(add_reply(turn, use("a", ISSUE, text)))
        assert last_results(turn)["a"].failed
        sent_calls(turn)


def test_an_approval_question_shows_the_tool_and_its_arguments() -> None:
    turn = start_turn(config(ASK))
    add_reply(turn, use("a", ISSUE, {"title": "Fog"}))
    question = next_question(turn)
    (item,) = question.calls
    assert (item.tool, item.what, item.risk) == (ISSUE, f"{ISSUE}\ntitle: Fog", "exec")
    assert item.rules == (ISSUE,)
    assert item.call_hash == call_hash(ISSUE, {"title": "Fog"}, "/work")
    turn.resolve(make_answer(turn, "approve"))
    assert turn.next() == Act((ToolCall("a", ISSUE, {"title": "Fog"}),))


@pytest.mark.parametrize("rule", [ISSUE, "mcp__github"])
def test_rules_name_the_tool_or_its_server(rule: str) -> None:
    allowed = start_turn(config(msgspec.structs.replace(ASK, allow=(rule,))))
    add_reply(allowed, use("a", ISSUE, {"title": "Fog"}))
    assert isinstance(allowed.next(), Act)
    denied = start_turn(config(msgspec.structs.replace(FULL, deny=(rule,))))
    event = failure(add_reply(denied, use("a", ISSUE, {"title": "Fog"})))
    assert event.tool_name == ISSUE
    assert f"denied by the rule {rule}" in str(event.error)


def test_gates_hold_for_a_used_tool() -> None:
    turn = start_turn(config(gates="strict"))
    add_reply(turn, use("a", ISSUE, {"title": "Fog"}))
    assert f"then call {ISSUE} again" in last_results(turn)["a"].text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": "create_issue", "arguments": {}}, f"Did you mean {ISSUE}?"),
        ({"name": "mcp__github__create_isue", "arguments": {}}, f"Did you mean {ISSUE}?"),
        ({"name": "volcano", "arguments": {}}, "there is no tool 'volcano'. find_tools finds"),
        ({"name": "x" * 4000, "arguments": {}}, "there is no tool 'xxx"),
        ({"name": "read_file", "arguments": {}}, "read_file is not called with use_tool."),
        ({"name": "plan", "arguments": {}}, "plan is not called with use_tool."),
        (
            {"name": "use_tool", "arguments": {"name": ISSUE}},
            "use_tool is not called with use_tool",
        ),
        ({"name": ISSUE, "arguments": [1]}, "Expected `object`, got `array` - at `$.arguments`"),
        ({"name": ISSUE, "arguments": "{"}, "Expected `object`, got `str`"),
        ({"name": ISSUE, "title": "Fog"}, "unknown field `title`"),
        ({"name": 7}, "Expected `str`, got `int` - at `$.name`"),
        ({}, "missing required field `name`"),
    ],
)
def test_a_use_that_names_no_tool_or_has_wrong_arguments_is_refused(
    arguments: dict[str, Any], sentence: str
) -> None:
    turn = start_turn(config(ASK))
    event = failure(add_reply(turn, ToolCall("a", "use_tool", arguments)))
    assert event.tool_name == "use_tool"
    assert sentence in str(event.error)
    assert last_results(turn)["a"].failed
    assert sent_calls(turn) == [ToolCall("a", "use_tool", arguments)]


def test_arguments_that_are_no_json_are_refused() -> None:
    turn = start_turn(config())
    event = failure(add_reply(turn, ToolCall("a", "use_tool", {}, malformed='{"name": "mcp')))
    assert "were not a JSON object" in str(event.error)


def test_an_unknown_tool_is_answered_without_the_deferred_ones() -> None:
    turn = start_turn(config())
    error = str(failure(add_reply(turn, ToolCall("a", "mcp__github__x", {}))).error)
    assert "find_tools, use_tool" in error
    assert ISSUE not in error


def test_missing_and_unknown_arguments_are_named_before_anybody_is_asked() -> None:
    turn = start_turn(config(ASK))
    event = failure(add_reply(turn, use("a", ISSUE, {"name": "Fog", "labels": []})))
    assert event.tool_name == ISSUE
    assert event.error == (
        f"Not run: missing arguments: 'title'; unknown arguments: 'name'. The arguments of {ISSUE}:"
        f" {msgspec.json.encode(SCHEMA).decode()}"
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {**SCHEMA, "required": [], "additionalProperties": {"type": "string"}},
        {**SCHEMA, "required": "x", "patternProperties": {".*": {}}},
        {"required": [7, ["x"]], "properties": 7},
    ],
)
def test_a_schema_that_is_open_or_odd_lets_any_argument_pass(schema: dict[str, Any]) -> None:
    assert argument_problem(ToolSpec("mcp__a__b", "", schema, "exec"), {"other": 1}) == ""


def test_an_interrupted_call_and_an_open_question_survive_a_checkpoint() -> None:
    turn = start_turn(config(msgspec.structs.replace(ASK, allow=("mcp__time",))))
    add_reply(turn, use("a", ISSUE, {"title": "Fog"}), use("b", "mcp__time__now", {}))
    turn.mark_started(["b"])
    restored = decode_checkpoint(stored_checkpoint(CheckpointEncoder().encode(turn)))
    assert restored.settle_interrupted() == []
    restored.resolve(make_answer(restored, "approve"))
    run_calls(restored)
    assert last_results(restored)["b"].text == OUTCOME_UNKNOWN
    assert sent_calls(restored) == [
        use("a", ISSUE, {"title": "Fog"}),
        use("b", "mcp__time__now", {}),
    ]


def test_messages_without_deferred_calls_are_sent_as_they_are() -> None:
    messages = weighed([user_message("Hi")])
    assert wrap_calls(messages, ()) == messages
    assert wrap_calls(messages, DEFERRED) == messages


def test_tools_of_servers_are_deferred_if_there_are_too_many_in_all() -> None:
    known = (*TOOLS[:2], *DEFERRED)
    assert split_deferred(known, math.inf, len(known)) == (known, ())
    assert split_deferred(known, math.inf, len(known) - 1) == (TOOLS[:2], DEFERRED)

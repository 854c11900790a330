"""The Turn, step by step."""

from typing import Any

import msgspec
import pytest

from internal.agent.domain.events.types import DiagnosticError, ToolCompleted
from internal.agent.domain.messages import (
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    user_message,
)
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.react.closing_prompts import (
    CLOSING_PROMPTS,
    EMPTY_REPLY_PROMPT,
    FILTERED,
    NO_ANSWER,
    STOP_EXPLANATIONS,
)
from internal.agent.domain.react.input_forms import (
    MAX_ROUNDS,
    InputField,
    InputForm,
    InputRequest,
)
from internal.agent.domain.react.steps import Act, ModelSpending, TurnOutcome
from internal.agent.domain.react.turn import MAX_EMPTY_REPLIES, MAX_REPEATS, OUTCOME_UNKNOWN, Turn
from internal.agent.domain.tasks import STATUS_BY_STOP_REASON, StopReason
from internal.agent.domain.usage import RunLimits, Usage
from tests.support import turn_driver
from tests.support.strict_provider import check_messages
from tests.support.turn_driver import (
    add_reply,
    last_results,
    make_answer,
    next_ask,
    next_question,
    outcome,
    read,
    run_calls,
    run_config,
    start_turn,
    write,
)


def test_a_reply_without_calls_is_the_answer() -> None:
    turn = start_turn(run_config("strict"))
    assert add_reply(turn, Thinking("Hm."), "  Seven", " herons.\n") == []
    assert outcome(turn) == TurnOutcome("final_answer", "Seven herons.")
    assert turn.messages[-1] == Message("assistant", (Text("Seven herons."),))


def test_an_answer_without_the_model_ends_the_turn_and_is_remembered() -> None:
    turn = start_turn(run_config("strict"))
    turn.answer("Please type.")
    assert outcome(turn) == TurnOutcome("final_answer", "Please type.")
    assert turn.run_messages()[-1] == Message("assistant", (Text("Please type."),))
    assert (turn.iteration, turn.usage) == (0, Usage())


def test_results_are_sent_in_the_order_of_the_calls() -> None:
    turn = start_turn(run_config())
    add_reply(turn, "I look.", read("a"), write("b"), read("c"))
    move = turn.next()
    assert isinstance(move, Act)
    assert [call.call_id for call in move.calls] == ["a", "b", "c"]
    for call_id in ("c", "a"):
        turn.add_tool_result(ToolResult(call_id, call_id.upper()))
    assert turn.next() == Act((write("b"),))
    turn.add_tool_result(ToolResult("b", "B"))
    assert tuple(next_ask(turn).messages[1:]) == (
        Message("assistant", (Text("I look."), read("a"), write("b"), read("c"))),
        Message("user", (ToolResult("a", "A"), ToolResult("b", "B"), ToolResult("c", "C"))),
    )


def test_a_second_result_and_a_result_without_a_call_are_ignored() -> None:
    turn = start_turn(run_config())
    add_reply(turn, read("a"), read("b"))
    turn.add_tool_result(ToolResult("a", "first"))
    turn.add_tool_result(ToolResult("a", "second"))
    turn.add_tool_result(ToolResult("z", "stranger"))
    turn.add_tool_result(ToolResult("b", ""))
    turn.add_tool_result(ToolResult("b", "too late"))
    assert {key: each.text for key, each in last_results(turn).items()} == {"a": "first", "b": ""}


def test_user_messages_are_sent_after_the_pending_results() -> None:
    turn = start_turn(run_config())
    add_reply(turn, read("a"))
    turn.add_user_message("Also the egrets.")
    turn.add_user_message(" \n")
    turn.add_user_message("And the ibises.")
    assert turn.pending_user_messages == ("Also the egrets.", "And the ibises.")
    run_calls(turn)
    turn.add_user_message("Thank you.")
    last = next_ask(turn).messages[-1]
    words = ("Also the egrets.", "And the ibises.", "Thank you.")
    assert last == Message("user", (ToolResult("a", "ok"), *map(Text, words)))


def test_unsent_user_messages_are_kept_when_the_run_is_stopped() -> None:
    turn = start_turn(run_config())
    add_reply(turn, read("a"))
    turn.add_user_message("Also the egrets.")
    turn.end("user_stop", "stopped")
    assert turn.run_messages()[2:] == [
        Message("user", (ToolResult("a", "not run", failed=True),)),
        user_message("Also the egrets."),
    ]


def test_repeated_call_ids_are_made_unique() -> None:
    history = [user_message("Hi"), Message("assistant", (read("x"), read("2Abc-1-1")))]
    history.append(Message("user", (ToolResult("x", ""), ToolResult("2Abc-1-1", ""))))
    turn = start_turn(run_config(), history)
    add_reply(turn, read("x"), read(""), read("2Abc-1-2"), read("a b"), read("new"))
    ids = run_calls(turn)
    assert len(set(ids)) == 5
    assert ids[-1] == "new"
    check_messages(next_ask(turn).messages)


def test_three_empty_replies_end_the_run() -> None:
    turn = start_turn(run_config())
    for _ in range(MAX_EMPTY_REPLIES - 1):
        (event,) = add_reply(turn, " \n", Thinking("…"))
        assert event == DiagnosticError(phase="think", error="the model gave an empty reply")
        assert next_ask(turn).messages[-1].text.endswith(EMPTY_REPLY_PROMPT)
        assert not next_ask(turn).final
    add_reply(turn)
    assert outcome(turn) == TurnOutcome(
        "error", "", "the model gave 3 empty replies", "model_empty"
    )


def test_a_call_resets_the_count_of_empty_replies() -> None:
    turn = start_turn(run_config())
    for _ in range(4):
        add_reply(turn)
        add_reply(turn, read("a"))
        run_calls(turn)
    assert turn.empty_replies == 0
    next_ask(turn)


def test_an_empty_reply_uses_an_iteration() -> None:
    turn = start_turn(run_config(limits=RunLimits(max_iterations=1)))
    add_reply(turn)
    assert next_ask(turn).final
    assert (
        next_ask(turn).messages[-1].text
        == f"{turn_driver.TASK}{EMPTY_REPLY_PROMPT}{CLOSING_PROMPTS['max_iterations']}"
    )


@pytest.mark.parametrize(("words", "answer"), [("Seven.", "Seven."), (" ", NO_ANSWER)])
def test_a_final_answer_is_requested_after_the_last_iteration(words: str, answer: str) -> None:
    turn = start_turn(run_config(limits=RunLimits(max_iterations=2)))
    for call_id in ("a", "b"):
        assert not next_ask(turn).final
        add_reply(turn, read(call_id))
        run_calls(turn)
    ask = next_ask(turn)
    assert ask.final
    assert ask.messages[-1].text == CLOSING_PROMPTS["max_iterations"]
    add_reply(turn, words, read("c"))
    assert outcome(turn) == TurnOutcome("max_iterations", answer)
    assert turn.iteration == 3
    assert all(call.call_id != "c" for message in turn.messages for call in message.calls)


def test_failures_in_a_row_end_the_run() -> None:
    turn = start_turn(run_config(limits=RunLimits(max_consecutive_tool_failures=3)))
    for call_id, failed in (("a", True), ("b", True), ("c", False), ("d", True), ("e", True)):
        add_reply(turn, read(call_id), read(f"{call_id}2"))
        run_calls(turn, failed=failed)
        assert not next_ask(turn).final
    add_reply(turn, read("f"), read("f2"))
    run_calls(turn, failed=True)
    assert next_ask(turn).final
    assert next_ask(turn).messages[-1].text == CLOSING_PROMPTS["error"]
    add_reply(turn, "It cannot be done.")
    expected = TurnOutcome("error", "It cannot be done.", "the last tool calls all failed")
    assert outcome(turn) == expected


def test_one_success_among_failures_is_a_success() -> None:
    turn = start_turn(run_config(limits=RunLimits(max_consecutive_tool_failures=1)))
    add_reply(turn, read("a"), read("b"))
    turn.add_tool_result(ToolResult("a", "no", failed=True))
    turn.add_tool_result(ToolResult("b", "yes"))
    assert turn.failures == 0
    assert not next_ask(turn).final


def test_an_exhausted_budget_ends_the_run_with_the_last_text() -> None:
    turn = start_turn(run_config(limits=RunLimits(max_cost=0.25)))
    add_reply(turn, read("a"), cost=0.25)
    run_calls(turn)
    add_reply(turn, "Four so far.", read("b"), cost=0.01)
    explanation = STOP_EXPLANATIONS["budget_exceeded"]
    assert outcome(turn) == TurnOutcome("budget_exceeded", "Four so far.", explanation)
    check_messages([*turn.run_messages(), user_message("Go on")])


def test_tokens_of_a_model_without_a_price_are_limited() -> None:
    turn = start_turn(run_config(limits=RunLimits(max_cost=0.25, max_tokens=10)))
    add_reply(turn, read("a"), cost=0.2)
    run_calls(turn)
    turn.add_reply([read("b")], "unpriced", Usage(4, 6), None)
    run_calls(turn)
    next_ask(turn)
    turn.add_reply([read("c")], "unpriced", Usage(1), None)
    assert outcome(turn).stop_reason == "budget_exceeded"


def test_known_costs_count_although_another_model_has_no_price() -> None:
    turn = start_turn(run_config(limits=RunLimits(max_cost=0.25)))
    turn.add_reply([read("a")], "fallback", Usage(1, 1), None)
    run_calls(turn)
    assert turn.cost is None
    add_reply(turn, read("b"), cost=0.2)
    run_calls(turn)
    next_ask(turn)
    add_reply(turn, read("c"), cost=0.2)
    assert outcome(turn).stop_reason == "budget_exceeded"


def test_usage_and_cost_are_kept_by_model() -> None:
    turn = start_turn(run_config())
    assert turn.cost == 0
    turn.add_reply([read("a")], "one", Usage(1, 2, 3, 4), 0.5)
    run_calls(turn)
    turn.add_reply([read("b")], "two", Usage(10, 20), 0.25)
    run_calls(turn)
    turn.add_reply([read("c")], "one", Usage(1, 1), 0.5)
    assert turn.spending == {
        "one": ModelSpending(Usage(2, 3, 3, 4), 1.0),
        "two": ModelSpending(Usage(10, 20), 0.25),
    }
    assert (turn.cost, turn.usage) == (1.25, Usage(12, 23, 3, 4))
    turn.add_reply([], "two", Usage(), None)
    turn.add_reply([], "two", Usage(), 0.1)
    assert turn.spending["two"].cost is None


def test_only_idempotent_calls_run_again_after_a_crash() -> None:
    turn = start_turn(run_config())
    add_reply(turn, read("a"), write("b"), read("c"), write("d"), read("e"))
    turn.mark_started(["a", "b", "c", "d"])
    turn.add_tool_result(ToolResult("c", "done"))
    turn.add_tool_result(ToolResult("d", "done"))
    assert turn.settle_interrupted() == [read("a")]
    assert turn.next() == Act((read("a"), read("e")))
    run_calls(turn)
    given = last_results(turn)
    assert list(given) == ["a", "b", "c", "d", "e"]
    assert given["b"] == ToolResult("b", OUTCOME_UNKNOWN, failed=True)
    assert given["d"].text == "done"
    assert turn.started == frozenset()


def test_the_outcome_of_a_call_that_has_started_is_unknown_when_the_run_ends() -> None:
    turn = start_turn(run_config())
    add_reply(turn, read("a"), read("b"), read("c"))
    turn.mark_started(["a"])
    turn.mark_started(["b"])
    turn.add_tool_result(ToolResult("b", "done"))
    assert turn.run_messages()[-1].parts == (
        ToolResult("a", OUTCOME_UNKNOWN, failed=True),
        ToolResult("b", "done"),
        ToolResult("c", "not run", failed=True),
    )


def test_a_call_of_a_removed_tool_is_not_repeated() -> None:
    turn = start_turn(run_config())
    add_reply(turn, read("a"))
    turn.mark_started(["a"])
    turn.config = msgspec.structs.replace(turn.config, tools=())
    assert turn.settle_interrupted() == []
    assert last_results(turn)["a"].text == OUTCOME_UNKNOWN


@pytest.mark.parametrize("stop_reason", ["timeout", "error", "user_stop"])
def test_an_external_end_keeps_the_last_text(stop_reason: StopReason) -> None:
    turn = start_turn(run_config(), [user_message("Hi"), Message("assistant", (Text("Hello."),))])
    turn.end(stop_reason, "enough")
    assert outcome(turn) == TurnOutcome(stop_reason, "", "enough")
    turn = start_turn(run_config())
    add_reply(turn, " Four so far.\n", read("a"))
    run_calls(turn)
    add_reply(turn, read("b"))
    turn.end(stop_reason, "enough")
    turn.end("error", "a second time")
    assert outcome(turn) == TurnOutcome(stop_reason, "Four so far.", "enough")
    assert STATUS_BY_STOP_REASON[stop_reason] in {"failed", "cancelled"}
    check_messages(
        [*turn.run_messages(), Message("assistant", (Text("Go on."),)), user_message("Yes")]
    )


def test_a_trim_reports_what_was_left_out() -> None:
    turn = start_turn(run_config())
    for n in range(6):
        add_reply(turn, read(f"c{n}"))
        run_calls(turn, "x" * 3000)
    assert turn.fit_context(100_000) is None
    event = turn.fit_context(3000)
    assert event is not None
    assert (event.reason, event.budget_tokens, event.messages_before) == ("window", 3000, 13)
    assert event.messages_after == len(next_ask(turn).messages) == 13
    assert event.tokens_after <= 0.7 * 3000 < 3000 < event.tokens_before
    harder = turn.fit_context(3000, refused=True)
    assert harder is not None
    assert harder.reason == "provider_refused"
    assert harder.tokens_after <= event.tokens_after // 2
    assert turn.fit_context(1, refused=True) is not None
    assert turn.fit_context(1, refused=True) is None
    check_messages(next_ask(turn).messages, [turn_driver.TASK])


def test_lone_surrogates_are_replaced_on_input() -> None:
    turn = start_turn(run_config(people=True))
    path = {"path": "c\udc00", "x": ["\ud83d"]}
    add_reply(turn, "a\ud83d", Thinking("b\ud83d"), ToolCall("a", "read_file", path))
    turn.add_user_message("d\ud83d\ude00\ud83d")
    turn.add_tool_result(ToolResult("a", "e\udfff"))
    add_reply(turn, turn_driver.call("q", "request_user", question="f\udfff", options=["g\ud800"]))
    turn.resolve(turn_driver.make_answer(turn, "text", "h\udfff"))
    add_reply(turn, ToolCall("m\ud800", "n\ud800", {}, "o\ud800"))
    add_reply(turn, "p\ud800")
    encoded = msgspec.json.encode(turn).decode()
    for letter in "abcefghop":
        assert f"{letter}�" in encoded
    assert "d😀�" in encoded


@pytest.mark.parametrize("depth", [61, 400])
def test_arguments_nested_too_deep_are_malformed(depth: int) -> None:
    deep: list[Any] = []
    for _ in range(depth):
        deep = [deep]
    turn = start_turn(run_config())
    (event,) = add_reply(turn, turn_driver.call("a", "read_file", path=deep))
    assert isinstance(event, ToolCompleted)
    assert "(it is nested more than 60 deep)" in str(event.error)
    check_messages(next_ask(turn).messages)


def test_a_turn_survives_storage() -> None:
    turn = start_turn(run_config("strict", people=True))
    add_reply(turn, turn_driver.plan_call("p", "Look", "Count", complexity="complex"))
    add_reply(turn, turn_driver.clarify_call("o", "1"))
    add_reply(turn, "Now.", read("a"), write("b"))
    turn.mark_started(["a"])
    turn.add_user_message("Also the egrets.")
    stored = msgspec.json.encode(turn)
    again = msgspec.json.decode(stored, type=Turn)
    assert msgspec.json.encode(again) == stored
    assert again.next() == turn.next()
    assert (again.plan, again.calls, again.pending_user_messages) == (
        turn.plan,
        turn.calls,
        turn.pending_user_messages,
    )


def test_instructions_begin_every_request_and_are_never_left_out() -> None:
    turn = start_turn(msgspec.structs.replace(run_config(), instructions="x" * 3000))
    first, words = next_ask(turn), Text("x" * 3000)
    assert (first.messages[0].role, first.messages[0].parts[0]) == ("user", words)
    assert words not in turn.messages[0].parts
    for number in range(5):
        add_reply(turn, read(f"r{number}"))
        run_calls(turn, "long " * 1000)
    assert turn.fit_context(1) is not None
    assert next_ask(turn).messages[0].parts[0] == words


NAME = InputRequest("S", (InputForm("k", "Name?", (InputField("n", "text", "N", required=True),)),))


def asking_turn(*calls: ToolCall, people: bool = True) -> Turn:
    turn = start_turn(run_config(people=people))
    add_reply(turn, *calls)
    turn.mark_started([each.call_id for each in calls])
    return turn


def test_a_call_that_needs_input_waits_for_the_other_calls_and_runs_again() -> None:
    turn = asking_turn(write("a"), write("b"))
    first, second = (each.call_id for each in turn.calls)
    assert turn.require_input(first, NAME)
    assert isinstance(step := turn.next(), Act)
    assert [each.call_id for each in step.calls] == [second]
    turn.add_tool_result(ToolResult(second, "ok"))
    assert next_question(turn).call_id == first
    assert turn.settle_interrupted() == []
    assert turn.run_messages()[-1].parts[0] == ToolResult(first, OUTCOME_UNKNOWN, failed=True)

    turn.resolve(make_answer(turn, "text", "Ada"))

    assert isinstance(step := turn.next(), Act)
    assert [each.call_id for each in step.calls] == [first]
    reply = turn.input_reply(first)
    assert reply is not None
    assert [each.values for each in reply.responses] == [{"n": "Ada"}]
    turn.mark_started([first])
    turn.add_tool_result(ToolResult(first, "hello Ada"))
    next_ask(turn)
    assert (last_results(turn)[first].text, turn.inputs) == ("hello Ada", {})


def test_a_call_is_not_repeated_after_a_crash_while_it_continues() -> None:
    turn = asking_turn(write("a"))
    (only,) = (each.call_id for each in turn.calls)
    turn.require_input(only, NAME)
    turn.resolve(make_answer(turn, "text", "Ada"))
    turn.mark_started([only])
    assert turn.settle_interrupted() == []
    assert last_results(turn)[only] == ToolResult(only, OUTCOME_UNKNOWN, failed=True)


def test_a_call_may_ask_a_bounded_number_of_times() -> None:
    turn = asking_turn(write("a"), people=False)
    (only,) = (each.call_id for each in turn.calls)
    asked = [turn.require_input(only, NAME) for _ in range(MAX_ROUNDS + 1)]
    assert asked == [*[True] * MAX_ROUNDS, False]
    reply = turn.input_reply(only)
    assert reply is not None
    assert [each.action for each in reply.responses] == ["decline"]


def test_input_is_asked_for_before_approvals_remain() -> None:
    policy = Policy(mode=Mode.ASK, allow=("read_file",))
    turn = start_turn(run_config(policy=policy, people=True))
    add_reply(turn, read("a"), write("b"))
    first = turn.calls[0].call_id
    turn.mark_started([first])
    turn.require_input(first, NAME)
    assert next_question(turn).kind == "clarify"
    turn.resolve(make_answer(turn, "reject"))
    assert isinstance(step := turn.next(), Act)
    assert [each.call_id for each in step.calls] == [first]
    turn.add_tool_result(ToolResult(first, "declined"))
    assert next_question(turn).kind == "approval"


def again(call_id: str) -> ToolCall:
    return ToolCall(call_id, "read_file", {"path": "a.txt"})


def test_equal_calls_with_equal_results_are_told_and_end_the_run() -> None:
    turn = start_turn(run_config())
    told = 0
    for number in range(MAX_REPEATS):
        assert not next_ask(turn).final
        add_reply(turn, again(f"c{number}"))
        turn.add_tool_result(ToolResult(f"c{number}", "the same"))
        told += "with the same results. Making them again" in next_ask(turn).messages[-1].text
    assert told == 3
    assert next_ask(turn).final
    assert "Give your final answer now" in next_ask(turn).messages[-1].text
    add_reply(turn, "I read it.")
    assert outcome(turn) == TurnOutcome(
        "error",
        "I read it.",
        "the model made the same calls 20 times in a row, with the same results",
        "model_repeats",
    )


def test_another_result_or_a_word_of_a_person_ends_a_row_of_equal_calls() -> None:
    turn = start_turn(run_config())
    for number in range(3):
        add_reply(turn, again(f"c{number}"))
        turn.add_tool_result(ToolResult(f"c{number}", "the same"))
    assert turn.repeats == 3
    add_reply(turn, again("d"))
    turn.add_tool_result(ToolResult("d", "another"))
    assert turn.repeats == 1
    add_reply(turn, again("e"))
    turn.add_user_message("go on")
    turn.add_tool_result(ToolResult("e", "another"))
    assert turn.repeats == 1


def test_a_filtered_reply_ends_the_run_with_its_own_code() -> None:
    turn = start_turn(run_config())
    turn.add_reply([Text("so")], "m", Usage(1, 1), 0.0, stop="filtered")
    assert outcome(turn) == TurnOutcome("error", "so", FILTERED, "model_answer_filtered")

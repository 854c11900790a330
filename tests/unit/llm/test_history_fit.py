"""Histories as servers take them: ids, order of roles, texts beside calls."""

from collections.abc import Sequence

import pytest

from internal.agent.domain.messages import (
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    user_message,
)
from internal.agent.domain.react.context_window import MergedMessages
from internal.llm.history_fit import call_id_for, call_id_form, fitted, is_unanswered
from internal.model_providers.dialect import Dialect
from tests.support.weighed_messages import weighed

OWN = "openai:gpt-x"
KIMI = "openai:kimi-k2.5"


def exchange(number: int, wire_id: str, origin: str = OWN, text: str = "") -> list[Message]:
    """Return a task, a call and its result."""
    call = ToolCall(f"run-{number}", "look", {}, wire_id=wire_id)
    result = ToolResult(f"run-{number}", "ok", wire_id=wire_id)
    said: tuple[Part, ...] = (Text(text), call) if text else (call,)
    return [
        user_message(f"task {number}"),
        Message("assistant", said, origin),
        Message("user", (result,), origin),
        Message("assistant", (Text("done"),), origin),
    ]


def sent_ids(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return the ids of the calls and their results."""
    parts = [part for each in messages for part in each.parts]
    calls = [part.wire_id for part in parts if isinstance(part, ToolCall)]
    results = [part.wire_id for part in parts if isinstance(part, ToolResult)]
    return [*zip(calls, results, strict=True)]


def of_a_run(*histories: list[Message]) -> Sequence[Message]:
    merged = MergedMessages()
    merged.add(weighed([each for history in histories for each in history]))
    return merged.request()


def test_ids_that_differ_are_left_as_they_are() -> None:
    messages = of_a_run(exchange(1, "a"), exchange(2, "b"), exchange(3, ""))
    assert fitted(messages, Dialect(), OWN) is messages


def test_of_equal_ids_the_first_call_keeps_its_own() -> None:
    messages = of_a_run(exchange(1, "a"), exchange(2, "a"), exchange(3, "b"))
    assert sent_ids(fitted(messages, Dialect(), OWN)) == [("a", "a"), ("", ""), ("b", "b")]
    assert sent_ids(messages)[1] == ("a", "a"), "the stored messages never change"


def test_an_equal_id_of_another_model_does_not_count() -> None:
    messages = of_a_run(exchange(1, "a", "other:m"), exchange(2, "a"))
    assert sent_ids(fitted(messages, Dialect(), OWN)) == [("a", "a"), ("a", "a")]


def test_calls_of_kimi_keep_their_ids_and_others_get_the_next_numbers() -> None:
    own = "functions.look:0"
    messages = of_a_run(
        exchange(1, "call_1", OWN), exchange(2, own, KIMI), exchange(3, own, KIMI), exchange(4, "")
    )
    ids = [call for call, _ in sent_ids(fitted(messages, Dialect(), KIMI))]
    assert ids[0] == own, "the first call of another model comes before"
    assert len(set(ids)) == len(ids)
    assert all(each.startswith("functions.look:") for each in ids)
    later = of_a_run(exchange(2, own, KIMI), exchange(3, "functions.look:1", KIMI))
    assert sent_ids(fitted(later, Dialect(), KIMI)) == sent_ids(later)


@pytest.mark.parametrize(
    ("dialect", "origin", "form"),
    [
        (Dialect(), KIMI, "functions"),
        (Dialect(), "openrouter:moonshotai/Kimi-K2-0905", "functions"),
        (Dialect(call_ids="nine"), KIMI, "nine"),
        (Dialect(), OWN, "any"),
    ],
)
def test_the_form_of_ids(dialect: Dialect, origin: str, form: str) -> None:
    assert call_id_form(dialect, origin) == form


def test_nine_letters_and_digits_are_made_of_the_id_of_the_call() -> None:
    call = ToolCall("run-1", "look", {}, wire_id="toolu_1")
    made = call_id_for(call, "nine", is_own=True)
    assert made is not None
    assert (len(made), made.isalnum()) == (9, True)
    assert call_id_for(ToolResult("run-1", "ok"), "nine", is_own=False) == made
    own = ToolCall("run-1", "look", {}, wire_id="D681PevKs")
    assert call_id_for(own, "nine", is_own=True) == "D681PevKs"
    assert call_id_for(own, "nine", is_own=False) == made


def test_a_text_beside_calls_moves_to_their_first_result() -> None:
    messages = of_a_run(exchange(1, "a", text="I look."), exchange(2, "b"))
    sent = fitted(messages, Dialect(text_with_calls=False), OWN)
    assert [each.text for each in sent if each.calls] == ["", ""]
    results = [part for each in sent for part in each.parts if isinstance(part, ToolResult)]
    assert [result.text for result in results] == [
        "[You wrote before this call: I look.]\nok",
        "ok",
    ]


def test_plain_messages_are_repaired() -> None:
    call = ToolCall("run-1", "look", {}, wire_id="a")
    sent = fitted(
        [
            Message("assistant", (Text("Hi."), call), OWN),
            Message("assistant", (Text("Well."),), OWN),
            Message("user", (ToolResult("gone", "x", failed=True), Text("Go."))),
        ],
        Dialect(),
        OWN,
    )
    assert [each.role for each in sent] == ["user", "assistant", "user"]
    assert is_unanswered(sent)
    missing, orphan, text = sent[-1].parts
    assert isinstance(missing, ToolResult)
    assert (missing.call_id, missing.wire_id, missing.failed) == ("run-1", "a", True)
    assert orphan == Text("[The call failed: x]")
    assert text == Text("Go.")
    assert not is_unanswered([Message("assistant", (Text("Hi."),))])

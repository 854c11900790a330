"""The context window: token estimates and the order of trimming."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.messages import (
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    user_message,
)
from internal.agent.domain.react.context_window import (
    IMAGE_NOTE,
    MAX_IMAGE_TOKENS,
    MIN_TEXT_CHARS,
    OVERHEAD_TOKENS,
    TRIM_TARGET,
    ContextWindow,
    message_budget,
    message_tokens,
    reserved_output,
    shorten_results,
    shorten_text,
    tools_tokens,
)
from internal.agent.domain.text import text_tokens
from tests.support.images import an_image
from tests.support.property_examples import examples
from tests.support.strict_provider import check_messages
from tests.support.turn_driver import TOOLS, read
from tests.support.weighed_messages import (
    fit_window,
    retained_calls,
    select_messages,
    window_tokens,
)

DONE = (Text("Done."),)

texts = st.sampled_from(["a", "heron " * 40, "鹭" * 90, "x" * 501, "y" * 1200, "🪶é" * 400])


def exchange(call_id: str, text: str, count: int = 1) -> list[Message]:
    calls = tuple(read(f"{call_id}-{n}") for n in range(count))
    results = tuple(ToolResult(call.call_id, text) for call in calls)
    return [Message("assistant", (Text("I look."), *calls)), Message("user", results)]


class Conversation(NamedTuple):
    """Messages, the index of the task, the user messages from there on, essential messages."""

    messages: list[Message]
    task_at: int
    said: list[str]
    essential: tuple[int, ...]


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    history: list[Message] = []
    for n in range(draw(st.integers(0, 4))):
        history.append(user_message(draw(texts)))
        for m in range(draw(st.integers(0, 2))):
            history += exchange(f"h{n}-{m}", draw(texts))
        if draw(st.booleans()):
            history.append(Message("assistant", (Text("An answer."),)))
    said = ["The task."]
    work = [user_message("The task.")]
    for n in range(draw(st.integers(0, 6))):
        work += exchange(f"w{n}", draw(texts), draw(st.integers(1, 3)))
        if draw(st.booleans()):
            said.append(f"Steering {n}.")
            work.append(user_message(said[-1]))
    answers = [at for at, message in enumerate(history) if message.text == "An answer."]
    return Conversation(
        [*history, *work], len(history), said, tuple(answers[-1:]) and (0, answers[-1])
    )


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 1), ("abc", 2), ("a" * 3000, 1001), ("鹭" * 300, 302), ("é" * 200, 135), ("🪶", 3)],
)
def test_a_text_is_estimated_in_tokens(text: str, tokens: int) -> None:
    assert text_tokens(text) == tokens


@given(st.text(), st.text())
def test_more_text_never_has_fewer_tokens(text: str, more: str) -> None:
    assert text_tokens(text) <= text_tokens(text + more)
    assert text_tokens(more) <= text_tokens(text + more)


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        (Text("a" * 30), 11),
        (ToolResult("a", "a" * 30), 11),
        (an_image(width=300, height=250), 101),
        (an_image(width=3000, height=2500), MAX_IMAGE_TOKENS),
        (an_image(width=0, height=0), MAX_IMAGE_TOKENS),
        (ToolResult("a", "a" * 30, images=(an_image(width=300, height=250),)), 112),
        (Thinking("a" * 30, "b" * 30, "c" * 30), 33),
        (ToolCall("a", "read", {"path": "a" * 19}), 2 + 11),
        (ToolCall("a", "read", {"path": "a" * 19}, wire_id="w" * 64), 2 + 11),
        (ToolCall("a", "read", {"path": "a" * 19}, wire_id="w" * 90), 2 + 11 + 31),
        (ToolCall("a", "read", {"path": "a" * 19}, opaque={"s": "b" * 22}), 2 + 11 + 11),
        (ToolResult("a", "a" * 30, wire_id="w" * 90), 11 + 31),
        (Thinking("a" * 30, "b" * 30, "c" * 30, {"s": "b" * 22}), 44),
    ],
)
def test_every_part_is_estimated_in_tokens(part: Part, tokens: int) -> None:
    assert message_tokens(Message("user", (part,))) == OVERHEAD_TOKENS + tokens
    assert message_tokens(Message("user", (part, part))) == OVERHEAD_TOKENS + 2 * tokens


def test_tool_schemas_count_as_tokens() -> None:
    each = [tools_tokens([tool]) for tool in TOOLS]
    assert all(one > 0 for one in each)
    assert tools_tokens(TOOLS) == sum(each)


def test_a_request_that_fits_is_not_trimmed() -> None:
    messages = [user_message("The task."), *exchange("a", "x" * 3000), *exchange("b", "x")]
    window = ContextWindow()
    assert fit_window(messages, 0, window, window_tokens(messages, 0, window)) is window


def earlier_runs(count: int, size: int) -> list[Message]:
    history: list[Message] = []
    for n in range(count):
        history += [user_message(f"Question {n}."), *exchange(f"h{n}", "x" * size)]
        history.append(Message("assistant", (Text("Done."),)))
    return history


def call_ids(messages: Sequence[Message]) -> list[str]:
    return [call.call_id for message in messages for call in message.calls]


def result_sizes(messages: Sequence[Message]) -> list[int]:
    results = (part for message in messages for part in message.parts)
    return [len(part.text) for part in results if isinstance(part, ToolResult)]


def test_old_results_are_shortened_first() -> None:
    messages = [*earlier_runs(4, 3000), user_message("The task."), *exchange("w", "x" * 3000)]
    budget = window_tokens(messages, 16, ContextWindow()) - 1
    window = fit_window(messages, 16, ContextWindow(), budget)
    assert window == ContextWindow(results_from=7)
    kept = select_messages(messages, 16, window)
    assert call_ids(kept) == ["h0-0", "h1-0", "h2-0", "h3-0", "w-0"]
    assert result_sizes(kept) == [MIN_TEXT_CHARS, MIN_TEXT_CHARS, 3000, 3000, 3000]
    assert window_tokens(messages, 16, window) <= budget * TRIM_TARGET


def test_calls_of_earlier_runs_are_left_out_next() -> None:
    messages = [*earlier_runs(4, 600), user_message("The task."), *exchange("w", "x" * 300)]
    window = fit_window(messages, 16, ContextWindow(), 1000)
    assert window == ContextWindow(exchanges_from=9, results_from=15)
    kept = select_messages(messages, 16, window)
    check_messages(kept, [*(f"Question {n}." for n in range(4)), "The task."])
    assert call_ids(kept) == ["h2-0", "h3-0", "w-0"]


def test_results_of_retained_calls_stay_while_others_of_their_run_are_left_out() -> None:
    loads = [read("load-0"), read("other-0")]
    messages = [
        user_message("The task."),
        Message("assistant", (Thinking("I load it.", "signed"), Text("Both."), *loads)),
        Message("user", (ToolResult("load-0", "s" * 3000), ToolResult("other-0", "o" * 3000))),
        *(part for n in range(6) for part in exchange(f"w{n}", "x" * 3000)),
    ]
    window = fit_window(messages, 0, ContextWindow(), 4000, retained=lambda: ("load-0",))
    kept = select_messages(messages, 0, window)
    check_messages(kept, ["The task."])
    assert call_ids(kept)[0] == "load-0"
    assert "other-0" not in call_ids(kept)
    assert result_sizes(kept)[0] == 3000
    assert isinstance(kept[1].parts[0], Thinking)
    smallest = select_messages(
        messages, 0, fit_window(messages, 0, window, 10, retained=lambda: ("load-0",))
    )
    assert result_sizes(smallest)[0] == MIN_TEXT_CHARS


def test_an_old_result_is_shortened_once_even_if_all_are_limited() -> None:
    messages = [user_message("The task."), *exchange("w", "x" * 3000), user_message("More.")]
    window = ContextWindow(results_from=3, limit=600)
    kept = select_messages(messages, 0, window)
    assert kept[2].parts[0] == shorten_results(messages[2], MIN_TEXT_CHARS).parts[0]


def test_nothing_is_retained_before_something_is_left_out() -> None:
    messages = [user_message("The task."), *exchange("w", "x" * 300)]

    def unexpected() -> tuple[str, ...]:
        raise AssertionError("asked although everything fits")

    assert fit_window(messages, 0, ContextWindow(), 1000, retained=unexpected) == ContextWindow()


def test_of_equal_retained_calls_the_newest_stays_and_their_size_is_bounded() -> None:
    def load(call_id: str, name: str, text: str, *, failed: bool = False) -> list[Message]:
        call = ToolCall(call_id, "load", {"name": name})
        return [
            Message("assistant", (call,)),
            Message("user", (ToolResult(call_id, text, failed),)),
        ]

    messages = [
        *load("a", "large", "x" * 3000),
        *load("b", "one", "x" * 300),
        *load("c", "wrong", "x" * 300, failed=True),
        *load("d", "two", "x" * 300),
        *load("e", "one", "x" * 300),
        *exchange("f", "x" * 300),
        Message("assistant", (ToolCall("g", "load", {"name": "running"}),)),
    ]
    assert retained_calls(messages, {"load"}, 1000) == ("e", "d")
    assert retained_calls(messages, {"load"}, 10_000) == ("e", "d", "a")
    assert retained_calls(messages, {"other"}, 10_000) == ()


def test_the_oldest_runs_are_left_out_next_but_never_an_essential_message() -> None:
    history = [
        message
        for n in range(10)
        for message in (user_message(f"Question {n}. " + "q" * 300), Message("assistant", DONE))
    ]
    messages = [*history, user_message("The task.")]
    window = fit_window(messages, 20, ContextWindow(essential=(18, 19)), 1000)
    assert window == ContextWindow(10, 20, essential=(18, 19))
    check_messages(select_messages(messages, 20, window), ["Question 5.", "The task."])
    window = fit_window(messages, 20, ContextWindow(essential=(8, 9)), 300)
    assert window == ContextWindow(20, 20, essential=(8, 9))
    kept = select_messages(messages, 20, window)
    check_messages(kept, ["Question 4.", "The task."])
    assert len(kept) == 3


def test_old_exchanges_of_the_run_are_left_out_next_but_never_user_messages() -> None:
    messages = [user_message("Hi"), Message("assistant", (Text("Hello."),)), user_message("Task.")]
    for n in range(5):
        messages += [*exchange(f"w{n}", "x" * 1500), user_message(f"Steering {n}.")]
    window = fit_window(messages, 2, ContextWindow(), 1200)
    assert (window.history_from, window.limit) == (2, None)
    kept = select_messages(messages, 2, window)
    check_messages(kept, ["Task.", *(f"Steering {n}." for n in range(5))])
    assert call_ids(kept) == ["w3-0", "w4-0"]
    assert result_sizes(kept) == [MIN_TEXT_CHARS, 1500]


def test_the_newest_results_and_the_essential_messages_are_shortened_last() -> None:
    history = [user_message("q" * 90_000), Message("assistant", (Text("a" * 90_000),))]
    work = [user_message("Task."), *exchange("a", "b" * 90), *exchange("c", "d" * 90_000, 2)]
    messages = [*history, *work]
    window = fit_window(messages, 2, ContextWindow(essential=(0, 1)), 8000)
    assert window == ContextWindow(2, 5, 5, 4096, (0, 1))
    kept = select_messages(messages, 2, window)
    assert [len(message.text) for message in kept[:2]] == [4096, 4096]
    assert result_sizes(kept) == [4096, 4096]
    assert "characters left out" in kept[0].text
    harder = fit_window(messages, 2, window, 10)
    assert harder == ContextWindow(2, 5, 5, MIN_TEXT_CHARS, (0, 1))
    assert fit_window(messages, 2, harder, 10) == harder
    check_messages(select_messages(messages, 2, harder), ["qqq", "Task."])


def test_shortening_never_makes_a_text_longer() -> None:
    (_, results) = exchange("a", "x" * (MIN_TEXT_CHARS + 1))
    assert shorten_results(results, MIN_TEXT_CHARS) == results
    message = user_message("x" * (MIN_TEXT_CHARS + 1))
    assert shorten_text(message, MIN_TEXT_CHARS) == message


def test_images_of_a_result_are_shortened_to_a_note() -> None:
    result = ToolResult("a", "a chart", images=(an_image(),))
    shortened = shorten_results(Message("user", (result,)), MIN_TEXT_CHARS)
    assert shortened.parts == (ToolResult("a", f"{IMAGE_NOTE}\na chart"),)


def test_an_image_is_shortened_to_a_note() -> None:
    picture = an_image()
    shown = shorten_text(Message("user", (picture, Text("What is it?"))), 100)
    assert shown == user_message(f"{IMAGE_NOTE}\nWhat is it?")
    assert shorten_text(Message("user", (picture,)), 100) == user_message(IMAGE_NOTE)


def test_the_budget_of_the_messages_is_what_the_rest_of_a_request_leaves() -> None:
    fixed = text_tokens("Count.") + tools_tokens(TOOLS)
    limits = {"context_window": 10_000, "max_output_tokens": 1000}
    assert message_budget("Count.", TOOLS, **limits) == 8500 - fixed
    assert message_budget("Count." * 9000, TOOLS, **limits) == 1


def test_a_long_reply_leaves_most_of_the_window_to_the_messages() -> None:
    fixed = text_tokens("") + tools_tokens(())
    limits = {"context_window": 200_000, "max_output_tokens": 128_000}
    assert message_budget("", (), **limits) == 190_000 - 25_000 - fixed
    assert reserved_output(200_000, 4_000) == 4_000
    assert reserved_output(32_000, 8_192) == 8_192
    assert reserved_output(8_000, 8_192) == 4_000


@given(conversations(), st.integers(-10, 4000), st.integers(0, 4000))
@examples(150)
def test_any_trim_leaves_a_valid_conversation(
    conversation: Conversation, budget: int, second: int
) -> None:
    messages, task_at, said, essential = conversation
    window = ContextWindow(essential=essential)
    for goal in (budget, second, 0):
        before = window
        window = fit_window(messages, task_at, before, goal)
        shown = select_messages(messages, task_at, window)
        check_messages(shown, said)
        assert window_tokens(messages, task_at, window) <= window_tokens(messages, task_at, before)
        assert fit_window(messages, task_at, window, goal) == window
        assert window.history_from >= before.history_from
        assert window.exchanges_from >= before.exchanges_from
        assert window.results_from >= before.results_from
        assert not essential or "An answer." in "".join(message.text for message in shown)
        if window.limit is None:
            newest = [message for message in messages[task_at:] if message.calls][-1:]
            assert all(message in shown for message in newest)
        if window_tokens(messages, task_at, window) > goal:
            assert is_smallest(window, messages, task_at)
        if window.history_from:
            assert window.exchanges_from >= task_at
        if window.exchanges_from > task_at:
            assert window.history_from == task_at


def is_smallest(window: ContextWindow, messages: Sequence[Message], task_at: int) -> bool:
    """Return True if nothing more can be left out."""
    work = [at for at in range(task_at, len(messages)) if messages[at].calls]
    newest = work[-1] if work else len(messages)
    smallest = ContextWindow(task_at, newest, newest, MIN_TEXT_CHARS, window.essential)
    return window_tokens(messages, task_at, window) == window_tokens(messages, task_at, smallest)


@given(conversations(), st.integers(0, 40), st.sampled_from([None, 32768, 2000, 1000, 500]))
@examples(100)
def test_corrected_estimates_only_grow(
    conversation: Conversation, more: int, limit: int | None
) -> None:
    messages, task_at, _, essential = conversation
    window = ContextWindow(limit=limit, essential=essential)
    longer = [*messages, *exchange("z", "z" * more)]
    assert window_tokens(messages, task_at, window) < window_tokens(longer, task_at, window)
    assert window_tokens(messages, task_at, window) <= window_tokens(
        messages, task_at, ContextWindow()
    )

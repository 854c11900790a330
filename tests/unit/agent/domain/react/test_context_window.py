"""The context window: token estimates and the order of trimming."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.agent.domain.messages import (
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    user_message,
)
from internal.agent.domain.react.context_window import (
    IMAGE_TOKENS,
    MIN_RESULT_CHARS,
    OVERHEAD_TOKENS,
    ContextWindow,
    fit_window,
    message_tokens,
    select_messages,
    text_tokens,
    tools_tokens,
    window_tokens,
)
from tests.support.strict_provider import check_messages
from tests.support.turn_driver import TOOLS, read

texts = st.sampled_from(["a", "heron " * 40, "鹭" * 90, "x" * 501, "y" * 1200, "🪶é" * 400])


def exchange(call_id: str, text: str, count: int = 1) -> list[Message]:
    calls = tuple(read(f"{call_id}-{n}") for n in range(count))
    results = tuple(ToolResult(call.call_id, text) for call in calls)
    return [Message("assistant", (Text("I look."), *calls)), Message("user", results)]


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[Message], int, list[str]]:
    """Return messages, the index of the task, and the user messages from there on."""
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
    return [*history, *work], len(history), said


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
        (Image("image/png", "x" * 9000), IMAGE_TOKENS),
        (Thinking("a" * 30, "b" * 30, "c" * 30), 33),
        (ToolCall("a", "read", {"path": "a" * 19}), 2 + 11),
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


def test_the_oldest_conversation_is_dropped_first() -> None:
    history: list[Message] = []
    for n in range(4):
        history += [user_message(f"{n}" * 900), *exchange(f"h{n}", "x" * 900)]
        history.append(Message("assistant", (Text("Done."),)))
    messages = [*history, user_message("The task."), *exchange("w", "x" * 900)]
    window = fit_window(messages, 16, ContextWindow(), 2000)
    assert window == ContextWindow(history_from=12)
    kept = select_messages(messages, 16, window)
    assert kept == tuple(messages[12:])
    assert window_tokens(messages, 16, window) <= 1400


def test_old_tool_exchanges_are_dropped_next_but_never_user_messages() -> None:
    messages = [user_message("Hi"), Message("assistant", (Text("Hello."),)), user_message("Task.")]
    for n in range(5):
        messages += [*exchange(f"w{n}", "x" * 1500), user_message(f"Steering {n}.")]
    window = fit_window(messages, 2, ContextWindow(), 2000)
    assert (window.history_from, window.result_limit) == (2, None)
    kept = select_messages(messages, 2, window)
    check_messages(kept, ["Task.", *(f"Steering {n}." for n in range(5))])
    assert [call.call_id for message in kept for call in message.calls] == ["w3-0", "w4-0"]


def test_results_are_shortened_last() -> None:
    messages = [user_message("Task."), *exchange("a", "b" * 90), *exchange("c", "d" * 90_000, 2)]
    window = fit_window(messages, 0, ContextWindow(), 5000)
    assert window == ContextWindow(0, 3, 4096)
    shown = select_messages(messages, 0, window)[-1].parts[0]
    assert isinstance(shown, ToolResult)
    assert len(shown.text) == 4096
    assert "characters left out" in shown.text
    harder = fit_window(messages, 0, window, 10)
    assert harder == ContextWindow(0, 3, MIN_RESULT_CHARS)
    assert fit_window(messages, 0, harder, 10) == harder
    check_messages(select_messages(messages, 0, harder), ["Task."])


def test_shortening_never_makes_a_result_longer() -> None:
    messages = [user_message("Task."), *exchange("a", "x" * (MIN_RESULT_CHARS + 1))]
    assert window_tokens(messages, 0, ContextWindow(0, 0, MIN_RESULT_CHARS)) <= window_tokens(
        messages, 0, ContextWindow()
    )


@given(conversations(), st.integers(-10, 4000), st.integers(0, 4000))
@settings(max_examples=150, deadline=None)
def test_any_trim_leaves_a_valid_conversation(
    conversation: tuple[list[Message], int, list[str]], budget: int, second: int
) -> None:
    messages, task_at, said = conversation
    window = ContextWindow()
    for goal in (budget, second, 0):
        before = window
        window = fit_window(messages, task_at, before, goal)
        shown = select_messages(messages, task_at, window)
        check_messages(shown, said)
        assert window_tokens(messages, task_at, window) <= window_tokens(messages, task_at, before)
        assert fit_window(messages, task_at, window, goal) == window
        assert window.history_from >= before.history_from
        assert window.work_from >= before.work_from
        newest = [message for message in messages[task_at:] if message.calls][-1:]
        assert all(message in shown for message in newest)
        if window_tokens(messages, task_at, window) > goal:
            assert is_smallest(window, messages, task_at)
        if window.work_from > task_at:
            assert window.history_from == task_at
        if window.result_limit is not None:
            replies = [at for at in range(task_at, len(messages)) if messages[at].calls]
            assert len(replies) <= 1 or window.work_from == replies[-1]


def is_smallest(window: ContextWindow, messages: Sequence[Message], task_at: int) -> bool:
    """Return True if nothing more can be left out."""
    work = [at for at in range(task_at, len(messages)) if messages[at].role == "assistant"]
    return (
        window.history_from == task_at
        and (len(work) <= 1 or window.work_from == work[-1])
        and window.result_limit == MIN_RESULT_CHARS
    )


@given(conversations(), st.integers(0, 40), st.sampled_from([None, 32768, 2000, 1000, 500]))
@settings(max_examples=100, deadline=None)
def test_corrected_estimates_only_grow(
    conversation: tuple[list[Message], int, list[str]], more: int, limit: int | None
) -> None:
    messages, task_at, _ = conversation
    window = ContextWindow(result_limit=limit)
    longer = [*messages, *exchange("z", "z" * more)]
    assert window_tokens(messages, task_at, window) < window_tokens(longer, task_at, window)
    assert window_tokens(messages, task_at, window) <= window_tokens(
        messages, task_at, ContextWindow()
    )

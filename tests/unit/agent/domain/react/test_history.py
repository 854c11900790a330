"""The parts of a history: their boundaries, and the kinds of messages."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.ids import RunId
from internal.agent.domain.messages import Message, Text, ToolResult, user_message
from internal.agent.domain.react.context_window import MIN_TEXT_CHARS, message_tokens, weigh
from internal.agent.domain.react.history import (
    STEP_SHARE,
    HistoryParts,
    Part,
    StoredMessage,
    message_kinds,
)
from tests.support.turn_driver import read

DONE = Message("assistant", (Text("Done."),))


def newest_first(sizes: list[int]) -> list[StoredMessage]:
    texts = (user_message("x" * 3 * size) for size in sizes)
    return [stored(text, number) for number, text in enumerate(texts, 1)][::-1]


def stored(message: Message, number: int = 1) -> StoredMessage:
    return StoredMessage(number, RunId("run-1"), "words", "", weigh(message))


def test_the_kinds_of_messages() -> None:
    exchange = [Message("assistant", (read("a"),)), Message("user", (ToolResult("a", "ok"),))]
    messages = [user_message("Task."), *exchange, user_message("And?"), *exchange, DONE]
    words = ["task", "exchange", "exchange", "words", "exchange", "exchange", "answer"]
    assert message_kinds(messages) == words
    assert message_kinds(messages[:4]) == words[:4]
    interim = Message("assistant", (Text("I look."), read("b")))
    ended = [*messages[:5], interim, messages[2]]
    assert message_kinds(ended) == [*words[:5], "words", "exchange"], "an end from outside"
    assert message_kinds([*messages, user_message("Wait.")]) == [*words, "words"]
    assert message_kinds([user_message("Task."), user_message("And?")]) == ["task", "words"]
    assert message_kinds([]) == []


def test_the_parts_of_a_budget_shorten_more_and_more() -> None:
    parts = HistoryParts.of(100_000)
    results = stored(Message("user", (ToolResult("a", "x" * 90_000),)))
    text = stored(user_message("y" * 90_000))
    assert parts.everything.shortened(results) == parts.whole.shortened(results) == results
    assert parts.short.shortened(results).tokens < MIN_TEXT_CHARS < results.tokens
    assert parts.short.shortened(text) == text
    shortened = parts.words.shortened(text)
    assert shortened.tokens == message_tokens(shortened.message) < 2000
    assert HistoryParts.of(1).words.shortened(text).tokens < MIN_TEXT_CHARS
    assert sum(part.budget for part in parts[1:]) < parts.everything.budget


def test_everything_that_fits_belongs_to_a_part() -> None:
    rows = newest_first([10] * 20)
    total = sum(row.tokens for row in rows)
    assert Part(total).start(rows) == 0
    assert Part(total - 1).start(rows) > 1
    assert Part(5).start(rows) == 21, "not even the newest message fits"
    assert Part(5).start([]) == 0


@pytest.mark.parametrize(
    ("count", "start"), [(100, 80), (107, 80), (108, 88), (109, 96), (123, 96)]
)
def test_a_part_starts_at_the_roundest_number(count: int, start: int) -> None:
    tokens = newest_first([10])[0].tokens
    assert Part(28 * tokens).start(newest_first([10] * count)) == start


@given(st.lists(st.integers(0, 300), min_size=2, max_size=80), st.integers(1, 4000))
def test_a_boundary_moves_forward_and_only_when_the_part_is_full(
    sizes: list[int], budget: int
) -> None:
    part = Part(budget)
    starts = []
    for count in range(1, len(sizes) + 1):
        rows = newest_first(sizes[:count])
        start = part.start(rows)
        kept = sum(row.tokens for row in rows if row.number >= start)
        dropped = [row for row in rows if row.number < start]
        assert kept <= budget
        if dropped:  # with the message before it, a step is never larger than needed
            assert kept + dropped[0].tokens > budget * STEP_SHARE
        starts.append(start)
    for before, after in pairwise(starts):
        assert after >= before

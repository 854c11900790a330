"""History at the start of a run: content, cost of reading, and changes."""

import gc
import sys
import tracemalloc
from collections.abc import Generator
from contextlib import closing
from itertools import pairwise, product

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from internal.agent.domain.ids import SessionId
from internal.agent.domain.messages import Message, Text, ToolResult, user_message
from internal.agent.domain.react.context_window import (
    IMAGE_NOTE,
    MIN_TEXT_CHARS,
    ContextWindow,
    message_tokens,
    weigh,
)
from internal.agent.domain.react.history import History, HistoryRef
from internal.agent.store.history import PAGE_SIZE, MessageCache, SessionMessages
from tests.support.images import an_image
from tests.support.property_examples import examples
from tests.support.session_history import SESSION, RunShape, StoredSession, run_messages
from tests.support.strict_provider import check_messages
from tests.support.weighed_messages import fit_window, select_messages

NEXT = "The next question."
OBJECT_BYTES = 400
"""Memory of the objects of a message without its text."""
ESSENTIAL_TOKENS = 3 * 2 * MIN_TEXT_CHARS
"""More than the last question and answer ever need at least."""


@pytest.fixture
def session() -> Generator[StoredSession]:
    with closing(StoredSession()) as opened:
        yield opened


def tokens(history: History) -> int:
    return sum(map(message_tokens, history.messages))


def request(history: History, window: ContextWindow | None = None) -> tuple[Message, ...]:
    messages = [*history.messages, user_message(NEXT)]
    window = window or ContextWindow(essential=history.essential)
    return select_messages(messages, len(history.messages), window)


def text_of(messages: tuple[Message, ...]) -> str:
    return "\n".join(
        part.text for each in messages for part in each.parts if isinstance(part, Text | ToolResult)
    )


def test_a_session_without_messages_has_no_history(session: StoredSession) -> None:
    assert session.read(1000) == History()


def test_a_session_that_fits_is_sent_as_it_is(session: StoredSession) -> None:
    runs = [run_messages(n, RunShape(replies=[2], result=3000)) for n in range(40)]
    for number, messages in enumerate(runs):
        session.add_run(number, messages)
    history = session.read(200_000)
    assert history.messages == [message for messages in runs for message in messages]
    assert history.essential == (156, 159)


def test_results_are_shortened_before_calls_and_calls_before_runs(session: StoredSession) -> None:
    for number in range(200):
        session.add_run(number, run_messages(number, RunShape(replies=[1], result=3000)))
    history = session.read(20_000)
    sizes = [
        (int(message.calls[0].call_id.split("-")[0]), len(result.text))
        for message, results in pairwise(history.messages)
        if message.calls
        for result in results.parts
        if isinstance(result, ToolResult)
    ]
    assert sizes[-1][0] == 199
    assert [run for run, _ in sizes] == list(range(sizes[0][0], 200))
    assert {size for _, size in sizes} == {MIN_TEXT_CHARS, 3000 + len("<result 100-0-0>") * 2 + 1}
    assert [size for _, size in sizes] == sorted(size for _, size in sizes)
    questions = [int(m.text.split()[1].split(">")[0]) for m in history.messages if "<q" in m.text]
    assert questions == list(range(questions[0], 200))
    assert 0 < questions[0] < sizes[0][0]
    assert history.messages[0].text.startswith("<question")


def test_a_large_run_is_cut_inside(session: StoredSession) -> None:
    session.add_run(0, run_messages(0, RunShape(replies=[1] * 12, result=60_000)))
    history = session.read(80_000)
    shown = text_of(request(history))
    assert "<question 0>" in shown
    assert "</answer 0>" in shown
    called = [call.call_id for message in history.messages for call in message.calls]
    assert called == [f"0-{n}-0" for n in range(12)]


def test_many_small_calls_do_not_push_out_the_question(session: StoredSession) -> None:
    session.add_run(0, run_messages(0, RunShape(replies=[1] * 105, result=40, steering=True)))
    history = session.read(3000)
    shown = text_of(request(history))
    assert "<question 0>" in shown
    assert "<steering 0>" in shown
    assert "</answer 0>" in shown
    assert tokens(history) <= 3000


def test_the_last_answer_is_kept_although_later_runs_have_none(session: StoredSession) -> None:
    session.add_run(0, run_messages(0, RunShape(answer=50_000)))
    for number in range(1, 300):
        session.add_run(number, run_messages(number, RunShape(question=900, answer=None)))
    history = session.read(5000)
    shown = text_of(request(history))
    for name in ("<question 0>", "<answer 0>", "</answer 0>", "<question 299>"):
        assert name in shown
    assert "<question 1>" not in shown
    assert tokens(history) <= 5000


def test_the_last_text_of_a_run_without_an_answer_is_kept(session: StoredSession) -> None:
    shape = RunShape(replies=[1] * 30, result=5000, answer=None)
    session.add_run(0, run_messages(0, shape))
    session.add_run(1, run_messages(1, RunShape(answer=6000)))
    shown = [message.text for message in session.read(3000).messages]
    assert [text[:12] for text in shown] == [
        "<question 0>",
        "I look.",
        "<question 1>",
        "<answer 1>xx",
    ]


@examples(30)
@given(budget=st.sampled_from([300, 2_000, 20_000, 200_000]), more=st.integers(0, 12))
def test_a_reference_stands_for_the_same_messages_whatever_follows(budget: int, more: int) -> None:
    with closing(StoredSession()) as session:
        for number in range(12):
            session.add_run(number, run_messages(number, RunShape(replies=[2], result=900)))
        history = session.read(budget)
        for number in range(12, 12 + more):
            session.add_run(number, run_messages(number, RunShape(replies=[1], result=300)))
        assert session.load(history.ref) == history


def test_a_resumed_run_has_the_messages_since_then_as_they_are(session: StoredSession) -> None:
    runs = [run_messages(n, RunShape(replies=[2], result=3000)) for n in range(6)]
    for number, messages in enumerate(runs[:4]):
        session.add_run(number, messages)
    history = session.read(900)
    for number, messages in enumerate(runs[4:], 4):
        session.add_run(number, messages)
    until = sum(map(len, runs))
    loaded = session.load(replace(history.ref, until=until))
    assert list(loaded.messages) == [*history.messages, *runs[4], *runs[5]]
    assert loaded.essential == history.essential
    assert loaded.ref.count == len(loaded.messages)


def test_a_new_turn_refers_to_no_history(session: StoredSession) -> None:
    session.add_run(0, run_messages(0, RunShape(replies=[2])))
    assert session.load(HistoryRef()) == History()


def test_images_of_earlier_runs_are_left_out_first(session: StoredSession) -> None:
    picture = an_image(width=3000, height=2500)
    answer = Message("assistant", (Text("A heron."),))
    session.add_run(0, [Message("user", (picture, Text("What is it?"))), answer])
    session.add_run(1, [Message("user", (picture,)), answer])
    assert picture in session.read(10_000).messages[0].parts
    assert [message.text for message in session.read(2000).messages] == [
        f"{IMAGE_NOTE}\nWhat is it?",
        "A heron.",
        IMAGE_NOTE,
        "A heron.",
    ]


def test_a_long_session_is_read_by_budget_and_in_pages(session: StoredSession) -> None:
    for number in range(300):
        session.add_run(number, run_messages(number, RunShape(replies=[1] * 10, result=500)))
    session.read(5000)
    assert session.rows_read <= 6 * PAGE_SIZE
    session.read(20_000)
    assert session.rows_read <= 12 * PAGE_SIZE
    assert session.statements <= 16


def test_messages_in_the_cache_are_not_read_again(session: StoredSession) -> None:
    cache, shape = MessageCache(), RunShape()
    for number in range(200):
        session.add_run(number, run_messages(number, shape))
    session.read(100_000, cache=cache)
    assert session.rows_read >= 400
    session.add_run(200, run_messages(200, shape))
    history = session.read(100_000, cache=cache)
    assert len(history.messages) == 402
    assert session.rows_read <= 6, "two new ones, the newest known one, the last answer and tasks"
    assert history == session.read(100_000)


def test_messages_of_a_session_that_was_replaced_are_read_again(session: StoredSession) -> None:
    cache = MessageCache()
    for number in range(60):
        session.add_run(number, run_messages(number, RunShape()))
    session.read(100_000, cache=cache)
    session.clear()
    assert session.read(100_000, cache=cache) == History()
    for name, runs in (("second", 60), ("third", 61), ("fourth", 10)):
        session.clear()
        for number in range(runs):
            session.add_run(f"{name}-{number}", run_messages(number, RunShape(answer=50)))
        assert session.read(100_000, cache=cache) == session.read(100_000)


def test_a_cache_keeps_the_sessions_that_were_used_last(session: StoredSession) -> None:
    session.add_run(0, run_messages(0, RunShape(question=3000, answer=3000)))
    cache = MessageCache()
    session.read(100_000, cache=cache)
    known = cache.get(SESSION)
    full = MessageCache(max_bytes=known.size * 5 // 2)
    for name in "abca":
        full.put(SessionId(name), known)
        assert full.size <= known.size * 2
    assert [name for name in "abc" if full.get(SessionId(name)).newest_first] == ["a", "c"]
    full.put(SessionId("d"), known.preceded_by([*known.newest_first] * 3))
    assert full.size == 0, "one that is too large is not kept"


def test_a_cache_takes_no_memory_for_sessions_without_messages() -> None:
    cache = MessageCache()
    gc.collect()
    tracemalloc.start()
    for number in range(1_000):
        cache.put(SessionId(f"session-{number}"), SessionMessages())
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 20_000


SHAPES = [
    RunShape(question=20, answer=100),
    RunShape(question=300, answer=600),
    RunShape(question=2_000, answer=6_000),
    RunShape(replies=[1] * 5, result=60),
    RunShape(replies=[3] * 5, result=4_000),
]
BUDGETS = [1_000_000_000, 30_000]
MEASURED_QUICKLY = [
    (BUDGETS[0], SHAPES[0], "\u4e2d"),
    (BUDGETS[1], SHAPES[2], "\u4e2d"),
    (BUDGETS[0], SHAPES[4], "\u4e2d"),
]


@pytest.mark.parametrize(
    ("budget", "shape", "letter"),
    [
        pytest.param(*case, marks=() if case in MEASURED_QUICKLY else pytest.mark.slow)
        for case in product(BUDGETS, SHAPES, "x\u4e2d")
    ],
)
def test_the_size_of_a_cache_is_about_the_memory_that_it_takes(
    session: StoredSession, shape: RunShape, letter: str, budget: int
) -> None:
    for number in range(50):
        session.add_run(number, run_messages(number, shape, letter))
    session.read(budget)
    cache = MessageCache()
    gc.collect()
    tracemalloc.start()
    session.read(budget, cache=cache)
    for row in cache.get(SESSION).newest_first:
        row.weighed.encode("some", msgspec.json.encode)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.65 * cache.size < taken < 1.02 * cache.size


def test_short_encodings_are_kept_and_do_not_double_the_memory() -> None:
    kept = 0
    for length in (20, 100, 500, 5_000, 50_000):
        for letter in ("x", "\u4e2d"):
            message = weigh(user_message(letter * length))
            message.encode("some", msgspec.json.encode)
            size = sys.getsizeof(message.encoded) if message.encoded else 0
            kept += size > 0
            assert size < sys.getsizeof(letter * length) + OBJECT_BYTES
    assert kept == 5


shapes = st.builds(
    RunShape,
    question=st.sampled_from([10, 200, 30_000]),
    replies=st.lists(st.integers(1, 3), max_size=4) | st.just([1] * 40),
    result=st.sampled_from([0, 50, 3000, 40_000]),
    answer=st.sampled_from([None, 10, 1000, 100_000]),
    steering=st.booleans(),
)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(shapes, st.booleans(), st.sampled_from([300, 9000, 100_000])),
        min_size=1,
        max_size=30,
    )
)
@examples(100)
def test_two_processes_with_caches_read_the_same_history(
    runs: list[tuple[RunShape, bool, int]],
) -> None:
    caches = {True: MessageCache(), False: MessageCache()}
    with closing(StoredSession()) as session:
        for number, (shape, process, budget) in enumerate(runs):
            session.add_run(number, run_messages(number, shape))
            assert session.read(budget, cache=caches[process]) == session.read(budget)


@given(
    st.lists(shapes, min_size=1, max_size=12),
    st.integers(1, 100_000),
    st.integers(0, 30_000),
    st.sampled_from("x鹭🪶"),
)
@examples(100)
def test_the_last_answer_and_its_question_are_in_the_next_request(
    runs: list[RunShape], budget: int, in_run: int, letter: str
) -> None:
    with closing(StoredSession()) as session:
        for number, shape in enumerate(runs):
            session.add_run(number, run_messages(number, shape, letter))
        history = session.read(budget)
    assert tokens(history) <= max(budget, int(budget * 0.85) + ESSENTIAL_TOKENS)
    answered = [number for number, shape in enumerate(runs) if shape.answer is not None][-1:]
    names = [
        f"question {len(runs) - 1}",
        *(f"{k} {n}" for n in answered for k in ("question", "answer")),
    ]
    messages = [*history.messages, user_message(NEXT)]
    window = ContextWindow(essential=history.essential)
    for goal in (in_run, in_run // 2, 0):  # the run grows, and a provider refuses its request
        shown = request(history, window)
        check_messages(shown, [NEXT])
        for name in names:
            assert f"<{name}>" in text_of(shown)
            assert f"</{name}>" in text_of(shown)
        window = fit_window(messages, len(history.messages), window, goal)
    final = request(history, window)
    assert sum(map(message_tokens, final)) <= ESSENTIAL_TOKENS


@given(
    st.lists(
        st.builds(
            RunShape,
            question=st.integers(10, 400),
            replies=st.lists(st.integers(1, 2), max_size=2),
            result=st.integers(0, 400),
            answer=st.integers(10, 1200),
        ),
        min_size=1,
        max_size=8,
    )
)
@example(
    [RunShape(10, [2], 278, 721, steering=False), RunShape(339, [2], 389, 1129, steering=False)]
)
@examples(10)
@pytest.mark.slow
def test_consecutive_requests_begin_with_the_same_messages(runs: list[RunShape]) -> None:
    budget, requests = 10_000, list[tuple[Message, ...]]()
    with closing(StoredSession()) as session:
        for number in range(90):
            session.add_run(number, run_messages(number, runs[number % len(runs)]))
            history = session.read(budget)
            assert tokens(history) <= budget
            requests.append(request(history))
            check_messages(requests[-1], [NEXT])
    pairs = list(pairwise(requests[40:]))
    same = [after[: len(before) - 1] == before[:-1] for before, after in pairs]
    assert sum(same) > len(pairs) * 0.4  # 24 of 49 in the example, mostly about 36

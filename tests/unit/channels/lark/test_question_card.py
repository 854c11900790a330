"""Every question renders as a valid card with the right content."""

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.plans import Plan, PlanEdit, number_steps
from internal.agent.domain.questions import (
    Answer,
    ApprovalItem,
    Decision,
    Question,
    QuestionKind,
    QuestionRecord,
    QuestionStatus,
)
from internal.agent.domain.text import escape_invisible
from internal.channels.chat.question_text import describe_late, describe_outcome, format_time
from internal.channels.lark.lark_markdown import fence
from internal.channels.lark.question_card import question_card, render_outcome, render_question
from internal.i18n.chat import ChatPhrases
from internal.simulators.lark.cards.card_json import check_card
from tests.support.lark_markdown import block_codes, codes, shown_tags
from tests.support.property_examples import examples

EN, ZH = ChatPhrases("en"), ChatPhrases("zh")
NAME = QuestionId("question-abc-1")


def call(number: int, what: str = "touch ran", **more: Any) -> ApprovalItem:
    return ApprovalItem(f"c{number}", "shell", what, "exec", "no rule allows it", "hash", **more)


def asked(
    question: Question, status: QuestionStatus = "open", answer: Answer | None = None
) -> QuestionRecord:
    ids = (RunId("run-1"), TaskId("task-1"), SessionId("session-1"))
    at = ("2026-11-22T10:00:00.000Z", "2026-11-23T10:00:00.000Z")
    return QuestionRecord(
        question, *ids, "lark:a:ou_1", "lark:a:oc_1", "operators", *at, status, answer
    )


def answer(decision: Decision = "approve", **more: Any) -> Answer:
    at = "2026-11-22T11:00:00.000Z"
    return Answer(NAME, decision, **{"by": "lark:a:ou_2", "via": "lark", "at": at, **more})


def of(kind: QuestionKind, **more: Any) -> Question:
    return Question(NAME, kind, "What?", **more)


def bytes_of(content: str) -> int:
    return len(json.dumps(content, ensure_ascii=False).encode())


texts = st.text(max_size=40) | st.builds(
    lambda word, count: word * count,
    st.sampled_from(
        ["x", "\u4e2d", "\n", '"\\\\', "line\n", "```", "<at id=all></at>", "\U0001f600"]
    ),
    st.integers(1, 20_000),
)
plans = st.builds(
    lambda goal, steps: Plan(1, goal, "complex", number_steps(steps)),
    texts,
    st.lists(texts, min_size=1, max_size=50),
)
questions = st.one_of(
    st.builds(lambda plan: of("plan", plan=plan), plans),
    st.builds(
        lambda title, options, multiple: Question(
            NAME, "clarify", title, options=tuple(options), multiple=multiple
        ),
        texts,
        st.lists(texts, max_size=20),
        st.booleans(),
    ),
    st.builds(
        lambda whats, diff, rules: of(
            "approval",
            calls=tuple(call(n, w, diff=diff, rules=rules) for n, w in enumerate(whats)),
        ),
        st.lists(texts, min_size=1, max_size=40),
        texts,
        st.sampled_from([(), ("shell(a)",), ("shell(b)",) * 20]),
    ),
)
answers = st.builds(
    answer,
    st.sampled_from(["approve", "edit", "reject", "text", "expired"]),
    text=texts,
    edit=st.none() | st.builds(lambda steps: PlanEdit(tuple(steps)), st.lists(texts, max_size=50)),
    name=texts,
    via=st.sampled_from(["lark", "web", "cli", "the clock"]),
    by=st.sampled_from(["lark:a:ou_2", "lark:b:ou_2", "local", "web:x", "nobody"]),
    rules=st.sampled_from([(), ("shell(a)",)]),
)


@examples(60)
@given(question=questions, words=st.sampled_from([EN, ZH]))
def test_every_open_question_is_a_valid_card(question: Question, words: ChatPhrases) -> None:
    for name, parts in render_question(asked(question), words, "a"):
        content = parts[0].content
        assert bytes_of(content) < 30 * 1024 or name == "text"
        if name == "card":
            card = json.loads(content)
            check_card(card)
            assert all(shown_tags(part) == [] for part in markdown_of(card))
            assert card == question_card(asked(question), words, "a")


@examples(60)
@given(
    question=questions,
    given_=st.none() | answers,
    status=st.sampled_from(["answered", "expired", "closed"]),
)
def test_every_closed_question_is_a_card_without_buttons(
    question: Question, given_: Answer | None, status: QuestionStatus
) -> None:
    closed = asked(question, status, given_)
    card = question_card(closed, EN, "a")
    check_card(card)
    assert bytes_of(json.dumps(card, ensure_ascii=False)) < 30 * 1024
    assert '"button"' not in json.dumps(card)
    assert describe_late(closed, "lark:a:ou_1", EN)
    for _, parts in render_outcome(closed, EN, "a"):
        assert bytes_of(parts[0].content) < 30 * 1024


SIGNS = (
    *("`", "```", "~~~", "\n", " ", "\t", "'", '"', "\\", "\\u003c", "![x](y)", "[a](http://b)"),
    *("<at id=all></at>", "</font>", "<b>", "&#60;", "$(x)", "| a |", "# ", "> ", "- ", "echo x"),
    *("\u202e", "\u200b", "\x1b[0m", "\r", "\0", "e\u0301", "中"),
)
words = st.lists(st.sampled_from(SIGNS), min_size=1, max_size=12) | st.lists(st.characters())
commands = words.map("".join)


@examples(300)
@given(command=commands, diff=commands, given_=st.none() | st.just(answer("reject")))
def test_a_call_is_shown_exactly(command: str, diff: str, given_: Answer | None) -> None:
    what, change = escape_invisible(command), escape_invisible(diff)
    question = of("approval", calls=(call(1, what, diff=change),))
    record = asked(question, "open" if given_ is None else "answered", given_)
    expected = [what, change] if change else [what]
    shown = {name: json.loads(parts[0].content) for name, parts in render_question(record, EN, "a")}
    assert card_codes(shown["card"])[: len(expected)] == expected
    assert card_codes(question_card(record, EN, "a"))[: len(expected)] == expected
    elements = [element for row in shown["post"]["zh_cn"]["content"] for element in row]
    assert [each["text"] for each in elements if each["tag"] == "code_block"] == expected
    text = shown["text"]["text"]
    assert not re.search(
        "<[a-z/!?]|\\]\\(", text.replace("<at user_id=ou_2></at>", ""), re.IGNORECASE
    )
    assert fence(what) in text.replace("\u200b", "")


def card_codes(card: dict[str, Any]) -> list[str]:
    """Return what the elements after the first one of a card show."""
    found: list[str] = []
    for element in card["body"]["elements"][1:]:
        if element["tag"] == "markdown":
            assert len(codes(element["content"])) <= 1
            found += block_codes(element["content"])
        elif element["tag"] == "div":
            found.append(element["text"]["content"])
    return found


def markdown_of(card: dict[str, Any]) -> list[str]:
    return [each["content"] for each in card["body"]["elements"] if each["tag"] == "markdown"]


@pytest.mark.parametrize(
    ("question", "given_", "said"),
    [
        (of("approval", calls=(call(1),)), answer(), "Allowed once"),
        (of("approval", calls=(call(1),)), answer(grant="rule"), "Always allowed"),
        (of("approval", calls=(call(1),)), answer("reject"), "Not allowed"),
        (of("approval", calls=(call(1), call(2))), answer(items={"c2": False}), "Allowed 1 of 2"),
        (of("plan"), answer("edit"), "Edited; waiting for another review"),
        (of("plan"), answer("approve", edit=PlanEdit(("x",))), "Approved with edits"),
        (of("plan"), answer("text"), "Changes requested"),
        (of("clarify"), answer("reject"), "Skipped"),
        (of("clarify"), answer("expired"), "Expired without an answer; treated as no"),
    ],
)
def test_the_outcome_of_a_question(question: Question, given_: Answer, said: str) -> None:
    assert describe_outcome(asked(question, "answered", given_), EN).text == said


@pytest.mark.parametrize(
    ("given_", "who"),
    [
        (answer(), "<at id=ou_2></at> in Lark"),
        (answer(by="lark:other:ou_2", name="*Mei* <at id=all>"), "Mei at idall in Lark"),
        (answer(by="local", via="cli"), "the owner in the terminal"),
        (answer(by="web:1", via="web"), "someone else on the web page"),
    ],
)
def test_the_card_shows_who_answered(given_: Answer, who: str) -> None:
    card = question_card(asked(of("plan"), "answered", given_), EN, "a")
    assert markdown_of(card) == [f"By {who}, {format_time(given_.at)}"]


def test_a_late_answer_is_told_who_answered_first() -> None:
    taken = asked(of("plan"), "answered", answer(name="Mei Lin"))
    assert describe_late(taken, "x", EN) == "Already answered by Mei Lin in Lark: Approved."
    assert describe_late(taken, "lark:a:ou_2", EN) == "Already answered by you in Lark: Approved."
    assert (
        describe_late(asked(of("plan")), "x", EN) == "This question has expired. Nothing was run."
    )


def test_placeholders_of_question_messages_are_filled_in() -> None:
    fields = {"count": 2, "yes": 1, "who": "w", "when": "t", "via": "v", "outcome": "o", "how": "h"}
    for name in ("asked_allowed_some", "asked_by", "click_late", "asked_until"):
        for word in ("{", "}"):
            assert word not in EN(name, **fields) + ZH(name, **fields)


def test_every_form_names_the_subtask_that_asks() -> None:
    question = of("approval", calls=(call(1, subject="ls", action="run"),))
    question = msgspec.structs.replace(question, asked_by="task 2 · analyst")
    title = "task 2 · analyst asks: Run ls?"
    open_ = question_card(asked(question), EN, "a")
    assert open_["header"]["title"]["content"] == title
    assert open_["config"]["summary"]["content"].startswith(title)
    for _, parts in render_question(asked(question), EN, "a"):
        assert title in parts[0].content
    settled = asked(question, "answered", answer())
    assert question_card(settled, EN, "a")["header"]["subtitle"]["content"] == title
    assert (
        "任务 2 · analyst 提问"
        in question_card(asked(question), ZH, "a")["header"]["title"]["content"]
    )
    for _, parts in render_outcome(settled, EN, "a"):
        assert "task 2 · analyst asks" in parts[0].content

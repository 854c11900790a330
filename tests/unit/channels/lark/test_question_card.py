"""Every question renders as a valid card with the right content."""

import json
import re
from collections.abc import Iterator
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
from internal.channels.chat.question_text import describe_late, describe_outcome, short_id
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
        if name in {"card", "plain-card"}:
            card = json.loads(content)
            check_card(card)
            assert all(shown_tags(own_tags(part)) == [] for part in markdown_of(card))
            if name == "plain-card":
                assert "collapsible_panel" not in content
                assert "local_datetime" not in content
                continue
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
    line = line_of(card)
    assert "\n" not in line
    assert shown_tags(own_tags(line)) == []
    assert all(shown_tags(own_tags(part)) == [] for part in markdown_of(card))
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
    assert set(expected) <= set(card_codes(shown["card"]))
    assert set(expected) <= set(card_codes(question_card(record, EN, "a")))
    elements = [element for row in shown["post"]["zh_cn"]["content"] for element in row]
    assert [each["text"] for each in elements if each["tag"] == "code_block"] == expected
    text = shown["text"]["text"]
    assert not re.search(
        "<[a-z/!?]|\\]\\(", text.replace("<at user_id=ou_2></at>", ""), re.IGNORECASE
    )
    assert fence(what) in text.replace("\u200b", "")


def elements_of(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the elements of a card, including the elements in panels."""
    for element in value:
        yield element
        yield from elements_of(element.get("elements", ()))


def card_codes(card: dict[str, Any]) -> list[str]:
    """Return the code texts of a card, which Lark shows verbatim."""
    found: list[str] = []
    for element in elements_of(card["body"]["elements"]):
        if element["tag"] == "markdown":
            assert len(codes(element["content"])) <= 1
            found += block_codes(element["content"])
        elif element["tag"] == "div":
            found.append(element["text"]["content"])
    return found


def markdown_of(card: dict[str, Any]) -> list[str]:
    texts = elements_of(card["body"]["elements"])
    return [each["content"] for each in texts if each["tag"] == "markdown"]


def line_of(card: dict[str, Any]) -> str:
    """Return the one line of a settled question."""
    (line,) = card["body"]["elements"]
    return str(line["header"]["title"]["content"])


def own_tags(text: str) -> str:
    """Return Markdown without the tags of the bot itself: times and mentions of who answered."""
    text = re.sub(r"<local_datetime [a-z_='0-9 ]+></local_datetime>", "", text)
    return text.replace("<at id=ou_2></at>", "")


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
    at = "millisecond='1795345200000'"
    (by,) = markdown_of(card)
    assert own_tags(by) == own_tags(f"By {who},  ")
    assert by.startswith(f"By {who}, <local_datetime {at} format_type='date_short'>")
    name = who.removesuffix(" in Lark").removesuffix(" in the terminal")
    assert line_of(card) == f"✓ **Approved** · What? · by {name.removesuffix(' on the web page')}"


def test_a_late_answer_is_told_who_answered_first() -> None:
    taken = asked(of("plan"), "answered", answer(name="Mei Lin"))
    assert describe_late(taken, "x", EN) == "Already answered by Mei Lin in Lark: Approved."
    assert describe_late(taken, "lark:a:ou_2", EN) == "Already answered by you in Lark: Approved."
    assert (
        describe_late(asked(of("plan")), "x", EN) == "This question has expired. Nothing was run."
    )


def test_placeholders_of_question_messages_are_filled_in() -> None:
    fields = {"count": 2, "yes": 1, "who": "w", "when": "t", "via": "v", "outcome": "o", "how": "h"}
    fields |= {"left": "l", "what": "x", "code": "c"}
    names = ("asked_allowed_some", "asked_by", "asked_by_at", "click_late", "asked_until")
    for name in (*names, "asked_within", "asked_line_by", "asked_code", "asked_withdrawn_by"):
        for word in ("{", "}"):
            assert word not in EN(name, **fields) + ZH(name, **fields)


def test_every_form_names_the_subtask_that_asks() -> None:
    question = of("approval", calls=(call(1, subject="ls", action="run"),))
    question = msgspec.structs.replace(question, asked_by="task 2 · analyst")
    open_ = question_card(asked(question), EN, "a")
    assert open_["header"]["title"]["content"] == "task 2 · analyst asks: Run this command?"
    assert open_["config"]["summary"]["content"] == "task 2 · analyst asks: Run ls?"
    for _, parts in render_question(asked(question), EN, "a"):
        assert "task 2 · analyst asks: Run this command?" in parts[0].content
    settled = asked(question, "answered", answer())
    assert (
        line_of(question_card(settled, EN, "a"))
        == "✓ **Allowed once** · task 2 · analyst asks: Run ls · by <at id=ou_2></at>"
    )
    assert (
        "任务 2 · analyst 提问"
        in question_card(asked(question), ZH, "a")["header"]["title"]["content"]
    )
    for _, parts in render_outcome(settled, EN, "a"):
        assert "task 2 · analyst asks" in parts[0].content


def test_an_open_card_says_each_thing_once_and_folds_the_rest() -> None:
    change = "--- a/notes.md\n+++ b/notes.md\n@@ -1 +1 @@\n-old\n+new"
    item = call(1, "write_file\npath: notes.md", diff=change, action="change", subject="notes.md")
    item = msgspec.structs.replace(item, risk="write", rules=("write_file(notes.md)",))
    card = question_card(asked(of("approval", calls=(item,))), EN, "a")
    exact, risk, buttons, more = card["body"]["elements"]
    assert card["header"]["title"]["content"] == "Change notes.md?"
    assert block_codes(exact["content"]) == ["@@ -1 +1 @@\n-old\n+new"]
    assert risk["text"]["content"] == "Changes files · no rule allows it"
    labels = [each["elements"][0]["text"]["content"] for each in buttons["columns"]]
    assert labels == ["Allow once", "Always allow this", "Deny"]
    (panel,) = more["elements"]
    assert (panel["header"]["title"]["content"], panel["expanded"]) == ("More", False)
    assert NAME not in json.dumps({**card, "body": [exact, risk]})


def test_a_long_command_is_whole_below_its_beginning() -> None:
    command = "\n".join(f"echo {n}" for n in range(40))
    card = question_card(asked(of("approval", calls=(call(1, command),))), EN, "a")
    first, *_ = card_codes(card)
    assert first.count("\n") == 12
    assert first.endswith("… 28 more lines")
    assert command in card_codes(card)


def test_options_are_listed_once() -> None:
    short, long = of("clarify", options=("red", "green")), of("clarify", options=("x" * 80, "y"))
    for question, count in ((short, 0), (long, 1)):
        for multiple in (False, True):
            record = asked(msgspec.structs.replace(question, multiple=multiple))
            card = question_card(record, EN, "a")
            listed = [text for text in card_codes(card) if text.startswith("1. ")]
            assert len(listed) == count
            labels = re.findall(r'"content": "(\d\.? ?\w*)"', json.dumps(card["body"]))
            assert labels == (["1", "2"] if count else ["1. red", "2. green"])


def test_a_text_names_its_code_and_the_time_left() -> None:
    for name, parts in render_question(asked(of("plan")), ZH, "a"):
        if not name.endswith("card"):
            assert short_id(NAME) in parts[0].content
            assert NAME not in parts[0].content
            assert "24 小时内有效" in parts[0].content


def test_a_withdrawn_question_says_by_whom() -> None:
    gone = answer("reject", withdrawn=True)
    card = question_card(asked(of("plan"), "answered", gone), EN, "a")
    assert line_of(card) == "○ Withdrawn by <at id=ou_2></at> · What?"
    unknown = msgspec.structs.replace(gone, by="", name="")
    assert describe_outcome(asked(of("plan"), "answered", unknown), EN).text

"""Answers: validation by question, and parsing from text."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.answers import AnswerInput, answer_schema, normalize_answer, read_answer
from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.ids import QuestionId
from internal.agent.domain.plans import Plan, PlanEdit, number_steps, read_steps
from internal.agent.domain.questions import ApprovalItem, Question
from internal.agent.domain.tools import targets_by_tool
from internal.tools.registry import TOOLS

PLAN = Plan(1, "tidy", "complex", number_steps(["look", "act"]))
ABOUT_PLAN = Question(QuestionId("q1"), "plan", "tidy", call_id="p", plan=PLAN)
OPEN = Question(QuestionId("q2"), "clarify", "which?", call_id="c")
ONE_OF = msgspec.structs.replace(OPEN, options=("red", "green", "3"))
SOME_OF = msgspec.structs.replace(ONE_OF, multiple=True)
TARGETS = dict(targets_by_tool(each.spec for each in TOOLS))
RULED = ApprovalItem("a", "shell", "git log", "exec", "no rule", "h1", ("shell(git log)",))
UNRULED = ApprovalItem("b", "shell", "sh x", "exec", "runs anything", "h2")
CALLS = Question(
    QuestionId("q3"), "approval", "Allow 2 calls?", calls=(RULED, UNRULED), targets=TARGETS
)
ONE_CALL = msgspec.structs.replace(CALLS, calls=(RULED,))
BROKEN = Question(QuestionId("q4"), "recovery", "The process died.")
YES, NO = frozenset({"yes", "ok", "好的"}), frozenset({"no", "不"})


@pytest.mark.parametrize(
    ("question", "given", "fitted"),
    [
        (ABOUT_PLAN, AnswerInput("approve", "go"), AnswerInput("approve", "go")),
        (ABOUT_PLAN, AnswerInput("reject"), AnswerInput("reject")),
        (ABOUT_PLAN, AnswerInput("text", "less"), AnswerInput("text", "less")),
        (
            ABOUT_PLAN,
            AnswerInput("edit", edit=PlanEdit((" look ", "act"), " tidy up ")),
            AnswerInput("edit", edit=PlanEdit(("look", "act"), "tidy up")),
        ),
        (
            ABOUT_PLAN,
            AnswerInput("approve", edit=PlanEdit(("act",))),
            AnswerInput("approve", edit=PlanEdit(("act",))),
        ),
        (OPEN, AnswerInput("text", "red"), AnswerInput("text", "red")),
        (OPEN, AnswerInput("approve"), AnswerInput("approve")),
        (ONE_OF, AnswerInput("text", choices=(2,)), AnswerInput("text", "green", choices=(2,))),
        (
            SOME_OF,
            AnswerInput("text", "pale", choices=(2, 1, 2)),
            AnswerInput("text", "green; red; pale", choices=(2, 1, 2)),
        ),
        (CALLS, AnswerInput("approve"), AnswerInput("approve")),
        (CALLS, AnswerInput("text", "use rg"), AnswerInput("reject", "use rg")),
        (CALLS, AnswerInput("reject", items={"a": True}), AnswerInput("reject", items={"a": True})),
        (
            ONE_CALL,
            AnswerInput("approve", grant="session"),
            AnswerInput("approve", grant="session", rules=("shell(git log)",)),
        ),
        (
            CALLS,
            AnswerInput("approve", items={"b": False}, grant="rule"),
            AnswerInput("approve", items={"b": False}, grant="rule", rules=("shell(git log)",)),
        ),
        (
            CALLS,
            AnswerInput("approve", grant="rule", rules=("shell(git *)",)),
            AnswerInput("approve", grant="rule", rules=("shell(git *)",)),
        ),
        (CALLS, AnswerInput("reject", grant="session"), AnswerInput("reject")),
        (BROKEN, AnswerInput("approve"), AnswerInput("approve")),
        (BROKEN, AnswerInput("approve", "use rg"), AnswerInput("text", "use rg")),
        (BROKEN, AnswerInput("reject", "no use"), AnswerInput("reject", "no use")),
    ],
)
def test_a_valid_answer_is_normalized(
    question: Question, given: AnswerInput, fitted: AnswerInput
) -> None:
    assert normalize_answer(question, given) == fitted


@pytest.mark.parametrize(
    ("question", "given", "sentence"),
    [
        (ABOUT_PLAN, AnswerInput("text", " \n"), "Say what should change"),
        (ABOUT_PLAN, AnswerInput("edit"), "needs edit"),
        (ABOUT_PLAN, AnswerInput("edit", edit=PlanEdit(())), "1 to 50 steps"),
        (ABOUT_PLAN, AnswerInput("edit", edit=PlanEdit(("look", " "))), "none of them is empty"),
        (ABOUT_PLAN, AnswerInput("edit", edit=PlanEdit(("x",) * 51)), "1 to 50 steps"),
        (ABOUT_PLAN, AnswerInput("edit", edit=PlanEdit(("\u6b65" * 4000,) * 4)), "too long"),
        (
            ABOUT_PLAN,
            AnswerInput("reject", edit=PlanEdit(("x",))),
            "edit goes with the decision edit",
        ),
        (ABOUT_PLAN, AnswerInput("approve", choices=(1,)), "choices have no meaning for a plan"),
        (ABOUT_PLAN, AnswerInput("approve", items={"a": True}), "no meaning for a plan"),
        (OPEN, AnswerInput("text"), "The answer is empty"),
        (OPEN, AnswerInput("text", choices=(1,)), "no option 1"),
        (ONE_OF, AnswerInput("text", choices=(0,)), "no option 0: the options are 1 to 3"),
        (ONE_OF, AnswerInput("text", choices=(1, 2)), "Choose one option"),
        (ONE_OF, AnswerInput("edit", edit=PlanEdit(("x",))), "edit has no meaning for a question"),
        (ONE_OF, AnswerInput("edit"), "Only a plan can be edited"),
        (ONE_OF, AnswerInput("approve", grant="rule"), "no meaning for a question"),
        (CALLS, AnswerInput("approve", edit=PlanEdit(("x",))), "edit has no meaning for calls"),
        (CALLS, AnswerInput("edit"), "Calls cannot be edited"),
        (CALLS, AnswerInput("text"), "Say yes or no"),
        (CALLS, AnswerInput("approve", items={"z": True}), "not about a call 'z'"),
        (CALLS, AnswerInput("approve", choices=(1,)), "choices have no meaning for calls"),
        (CALLS, AnswerInput("approve", grant="session"), "it can be allowed once only"),
        (CALLS, AnswerInput("approve", rules=("shell(ls)",)), "Rules need a yes"),
        (CALLS, AnswerInput("approve", grant="rule", rules=("shell(sudo *)",)), "runs any program"),
        (CALLS, AnswerInput("approve", grant="rule", rules=("(",)), "is not a rule"),
        (BROKEN, AnswerInput("text", " "), "should do differently"),
        (BROKEN, AnswerInput("edit"), "Only a plan can be edited"),
        (BROKEN, AnswerInput("approve", edit=PlanEdit(("x",))), "Only a plan can be edited"),
        (BROKEN, AnswerInput("approve", choices=(1,)), "no meaning for another try"),
    ],
)
def test_an_invalid_answer_is_rejected_with_a_message(
    question: Question, given: AnswerInput, sentence: str
) -> None:
    with pytest.raises(InvalidRequest, match=sentence):
        normalize_answer(question, given)


@pytest.mark.parametrize(
    ("question", "text", "understood"),
    [
        (ABOUT_PLAN, "OK", AnswerInput("approve")),
        (ABOUT_PLAN, "好的。", AnswerInput("approve")),
        (ABOUT_PLAN, " No! ", AnswerInput("reject")),
        (ABOUT_PLAN, "ok but slower", AnswerInput("text", "ok but slower")),
        (ABOUT_PLAN, "  ", None),
        (CALLS, "yes", AnswerInput("approve")),
        (CALLS, "不", AnswerInput("reject")),
        (CALLS, "yes please", None),
        (CALLS, "1", None),
        (OPEN, "ok", AnswerInput("text", "ok")),
        (OPEN, "1", AnswerInput("text", "1")),
        (ONE_OF, "2", AnswerInput("text", choices=(2,))),
        (ONE_OF, "green", AnswerInput("text", choices=(2,))),
        (ONE_OF, "3", AnswerInput("text", choices=(3,))),
        (ONE_OF, "4", AnswerInput("text", "4")),
        (ONE_OF, "1 2", AnswerInput("text", "1 2")),
        (SOME_OF, "1, 2", AnswerInput("text", choices=(1, 2))),
        (SOME_OF, "2 2", AnswerInput("text", choices=(2,))),
        (SOME_OF, "both", AnswerInput("text", "both")),
        (BROKEN, "ok", AnswerInput("approve")),
        (BROKEN, "no", AnswerInput("reject")),
        (BROKEN, "use rg", AnswerInput("text", "use rg")),
    ],
)
def test_a_text_is_parsed_as_an_answer_or_rejected(
    question: Question, text: str, understood: AnswerInput | None
) -> None:
    assert read_answer(question, text, YES, NO) == understood


@given(st.sampled_from([ABOUT_PLAN, OPEN, ONE_OF, SOME_OF, CALLS, BROKEN]), st.text(max_size=40))
def test_every_parsed_answer_is_valid(question: Question, text: str) -> None:
    understood = read_answer(question, text, YES, NO)
    if understood is not None:
        normalize_answer(question, understood)


@pytest.mark.parametrize("question", [ABOUT_PLAN, OPEN, ONE_OF, SOME_OF, CALLS, BROKEN])
def test_the_schema_lists_the_fields_that_apply_to_the_question(question: Question) -> None:
    fields: dict[str, Any] = answer_schema(question)["properties"]
    more = {
        "plan": {"edit"}, "clarify": {"choices"}, "approval": {"items", "grant", "rules"},
        "recovery": set[str](),
    }  # fmt: skip
    assert set(fields) == {"decision", "text", *more[question.kind]}
    assert answer_schema(question)["additionalProperties"] is False


def test_steps_are_read_from_numbered_and_bulleted_lines() -> None:
    text = "1. look\n 2) act twice\n\n- rest\n（3 times) stay\n3、走\n2024 was fine"  # noqa: RUF001 - so they write
    assert read_steps(text) == (
        "look", "act twice", "rest", "（3 times) stay", "走", "2024 was fine",  # noqa: RUF001 - so they write
    )  # fmt: skip

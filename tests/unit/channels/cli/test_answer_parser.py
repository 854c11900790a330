"""Decisions of `larkspur answer` in both languages, parsed into answers."""

from typing import Any

import msgspec
import pytest

from internal.agent.domain.answers import AnswerInput, normalize_answer
from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.ids import QuestionId
from internal.agent.domain.plans import Plan, PlanEdit, number_steps
from internal.agent.domain.questions import ApprovalItem, Question
from internal.agent.domain.tools import targets_by_tool
from internal.channels.cli.answer_parser import DecisionText, describe_answer, parse_answer
from internal.channels.cli.exit_codes import USAGE, CliExit
from internal.i18n.catalog import MessageCatalog
from internal.tools.registry import TOOLS

ID = QuestionId("question-1")
PLAN = Question(ID, "plan", "Go?", plan=Plan(1, "report", "complex", number_steps(["a", "b"])))
CALLS = Question(
    ID,
    "approval",
    "Allow 2 calls?",
    calls=(
        ApprovalItem("c1", "shell", "touch a", "exec", "", "h1", ("shell(touch a)",)),
        ApprovalItem("c2", "shell", "touch b", "exec", "", "h2", ("shell(touch b)",)),
    ),
    targets=dict(targets_by_tool(tool.spec for tool in TOOLS)),
)
COLOUR = Question(ID, "clarify", "Which?", options=("red", "green", "blue"))
COLOURS = msgspec.structs.replace(COLOUR, multiple=True)
FREE = Question(ID, "clarify", "How many?")


def view(question: Question) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(question)
    return {**shown, "question_id": question.id}


def given(question: Question, words: str, **more: Any) -> AnswerInput:
    """Return the answer as it counts."""
    said = parse_answer(view(question), DecisionText(words, **more))
    return normalize_answer(question, msgspec.convert(said, AnswerInput))


@pytest.mark.parametrize("question", [PLAN, CALLS])
@pytest.mark.parametrize("word", ["yes", "Y", "approve", "once", "ok", "好的", "同意", "可以。"])
def test_yes_approves(question: Question, word: str) -> None:
    assert given(question, word) == AnswerInput("approve")


@pytest.mark.parametrize("question", [PLAN, CALLS])
@pytest.mark.parametrize("word", ["no", "N", "reject", "No.", "不行", "拒绝"])
def test_no_rejects(question: Question, word: str) -> None:
    assert given(question, word) == AnswerInput("reject")


@pytest.mark.parametrize(
    "words",
    ["no because it is late", "No, because it is late", "拒绝，因为it is late"],  # noqa: RUF001 - as people write
)
def test_reason_of_a_rejection_is_kept(words: str) -> None:
    assert given(CALLS, words) == AnswerInput("reject", "it is late")
    assert given(PLAN, words) == AnswerInput("reject", "it is late")


@pytest.mark.parametrize(
    ("word", "grant"), [("session", "session"), ("rule", "rule"), ("规则", "rule")]
)
def test_approval_with_a_grant_keeps_the_offered_rules(word: str, grant: str) -> None:
    answer = given(CALLS, word)
    assert (answer.decision, answer.grant) == ("approve", grant)
    assert answer.rules == ("shell(touch a)", "shell(touch b)")
    assert given(CALLS, word, rules=["shell(touch *)"]).rules == ("shell(touch *)",)


def test_free_text_about_calls_rejects_them_with_that_reason() -> None:
    assert given(CALLS, "use the other folder") == AnswerInput("reject", "use the other folder")


def test_free_text_about_a_plan_is_feedback_even_if_it_starts_with_no() -> None:
    assert given(PLAN, "no, three steps") == AnswerInput("text", "no, three steps")


def test_single_calls_are_named_by_number_or_id() -> None:
    answer = given(CALLS, "no", items=["1=yes", "c2=no"])
    assert (answer.decision, answer.items) == ("reject", {"c1": True, "c2": False})
    assert given(CALLS, "yes", items=["2=不行"]).items == {"c2": False}


@pytest.mark.parametrize("item", ["3=yes", "0=yes", "c9=no", "yes", "1=maybe", "1=", "="])
def test_invalid_item_is_refused(item: str) -> None:
    with pytest.raises(CliExit) as refused:
        parse_answer(view(CALLS), DecisionText("no", items=[item]))
    assert refused.value.code == USAGE


def test_options_are_chosen_by_number_or_name() -> None:
    assert given(COLOUR, "2") == AnswerInput("text", "green", choices=(2,))
    assert given(COLOUR, "blue") == AnswerInput("text", "blue", choices=(3,))
    assert given(COLOURS, "1,3") == AnswerInput("text", "red; blue", choices=(1, 3))
    assert given(COLOURS, "1、3").choices == (1, 3)


def test_free_text_answers_a_clarification() -> None:
    assert given(COLOUR, "violet") == AnswerInput("text", "violet")
    assert given(COLOUR, "1,3") == AnswerInput("text", "1,3")
    assert given(FREE, "yes") == AnswerInput("text", "yes")
    assert given(FREE, "7") == AnswerInput("text", "7")
    assert given(FREE, "拒绝") == AnswerInput("reject")
    option = msgspec.structs.replace(COLOUR, options=("approve", "reject"))
    assert given(option, "approve") == AnswerInput("text", "approve", choices=(1,))


@pytest.mark.parametrize("question", [PLAN, CALLS, COLOUR, FREE])
@pytest.mark.parametrize("words", ["", "   ", "\n"])
def test_empty_answer_is_refused(question: Question, words: str) -> None:
    with pytest.raises(CliExit, match="The answer is empty"):
        parse_answer(view(question), DecisionText(words))


def test_edit_has_the_steps_and_goal_of_the_plan() -> None:
    answer = given(PLAN, "edit", steps=["look ", "write"], goal="shorter")
    assert answer.edit is not None
    assert (answer.decision, answer.edit.steps, answer.edit.goal) == (
        "edit",
        ("look", "write"),
        "shorter",
    )


def test_yes_with_steps_approves_the_edited_plan() -> None:
    answer = given(PLAN, "yes", steps=["look"])
    assert answer.edit is not None
    assert (answer.decision, answer.edit.steps) == ("approve", ("look",))


@pytest.mark.parametrize("steps", [[], [""], ["a", "  "], ["x"] * 51, ["x" * 4001]])
def test_invalid_steps_are_refused(steps: list[str]) -> None:
    with pytest.raises(CliExit, match="step"):
        parse_answer(view(PLAN), DecisionText("edit", steps))


def test_steps_need_the_decision_edit() -> None:
    with pytest.raises(CliExit, match="Steps need the decision edit"):
        parse_answer(view(PLAN), DecisionText("no", ["a"]))
    with pytest.raises(CliExit, match="--goal needs the steps"):
        parse_answer(view(CALLS), DecisionText("yes", goal="a"))
    with pytest.raises(InvalidRequest, match="edit"):
        given(CALLS, "edit", steps=["a"])
    assert given(FREE, "edit") == AnswerInput("text", "edit")


def test_decision_that_does_not_fit_the_question_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no meaning for a plan"):
        given(PLAN, "session")
    with pytest.raises(InvalidRequest, match="Rules need a yes"):
        given(CALLS, "yes", rules=["shell(touch *)"])
    with pytest.raises(CliExit, match="at most 20,000"):
        parse_answer(view(FREE), DecisionText("x" * 20_001))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (AnswerInput("approve"), "yes"),
        (
            AnswerInput("approve", grant="rule", rules=("shell(ls)",)),
            "yes, with a new rule: shell(ls)",
        ),
        (AnswerInput("reject"), "no"),
        (AnswerInput("reject", "it is late"), "no, because it is late"),
        (AnswerInput("reject", items={"c1": True, "c2": False}), "no · c1: yes · c2: no"),
        (AnswerInput("approve", edit=PlanEdit(("a", "b"))), "yes, with your plan: a → b"),
        (
            AnswerInput("edit", edit=PlanEdit(("a",))),
            "your plan, to be approved again: a",
        ),
        (AnswerInput("text", "green"), "green"),
    ],
)
def test_stored_answer_is_described(answer: AnswerInput, said: str) -> None:
    question = {"kind": "approval", "answer": msgspec.to_builtins(answer)}
    assert describe_answer(question, MessageCatalog("cli", "en")) == f"Answer stored: {said}"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (AnswerInput("approve"), "retry"),
        (AnswerInput("reject"), "given up"),
        (AnswerInput("text", "use rg"), "use rg"),
    ],
)
def test_stored_answer_about_an_interrupted_run_is_described(
    answer: AnswerInput, text: str
) -> None:
    question = {"kind": "recovery", "answer": msgspec.to_builtins(answer)}
    assert describe_answer(question, MessageCatalog("cli", "en")) == f"Answer stored: {text}"


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("retry", AnswerInput("approve")),
        ("重试", AnswerInput("approve")),
        ("give up", AnswerInput("reject")),
        ("放弃", AnswerInput("reject")),
        ("use rg instead", AnswerInput("text", "use rg instead")),
    ],
)
def test_an_interrupted_run_is_retried_given_up_or_advised(words: str, answer: AnswerInput) -> None:
    assert given(Question(ID, "recovery", "It died."), words) == answer

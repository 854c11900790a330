"""Cards show text safely; buttons and form values become answers or the reason why not."""

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.answers import AnswerInput, normalize_answer
from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.ids import QuestionId
from internal.agent.domain.plans import Plan, PlanEdit, number_steps
from internal.agent.domain.questions import ApprovalItem, Question
from internal.channels.lark.question_form import (
    MAX_FIELD_LENGTH,
    ActionName,
    ButtonAction,
    InvalidAnswer,
    answer_controls,
    button,
    button_row,
    checkbox,
    form,
    markdown,
    more_panel,
    plain_text,
    read_card_answer,
    select,
    shows_options,
    steps_as_lines,
    text_input,
)
from internal.i18n.chat import ChatPhrases
from internal.simulators.lark.cards.card_json import check_card
from tests.support.property_examples import examples

EN = ChatPhrases("en")
NAME = QuestionId("question-abc-1")
CALLS = tuple(
    ApprovalItem(f"c{number}", "shell", "touch ran", "exec", "why", "hash") for number in (1, 2)
)
APPROVAL = Question(NAME, "approval", "What?", calls=CALLS)
PLAN = Question(
    NAME, "plan", "What?", plan=Plan(1, "goal", "complex", number_steps(["one", "two"]))
)
CLARIFY = Question(NAME, "clarify", "What?", options=("red", "green"), multiple=True)

RECOVERY = Question(NAME, "recovery", "It died.")

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
ACTIONS: tuple[ActionName, ...] = (
    *("approve", "session", "rule", "reject", "because"),
    *("each", "choose", "say", "edit", "change"),
)


@examples(200)
@given(
    question=st.sampled_from([APPROVAL, PLAN, CLARIFY, RECOVERY]),
    name=st.sampled_from(ACTIONS),
    number=st.integers(),
    entered=st.none()
    | st.dictionaries(
        st.sampled_from(["words", "chosen", "steps", "call_1", "call_2", "x"]), values
    ),
)
def test_any_click_is_an_answer_or_has_a_message(
    question: Question, name: ActionName, number: int, entered: dict[str, Any] | None
) -> None:
    answer = read_card_answer(ButtonAction(NAME, name, number), entered, question)
    if isinstance(answer, InvalidAnswer):
        assert EN(answer.phrase)
        return
    assert isinstance(answer, AnswerInput)
    with suppress(InvalidRequest):
        normalize_answer(question, answer)


@pytest.mark.parametrize(
    ("question", "name", "entered", "answer"),
    [
        (APPROVAL, "approve", None, AnswerInput("approve")),
        (APPROVAL, "rule", None, AnswerInput("approve", grant="rule")),
        (APPROVAL, "because", {"words": " no "}, AnswerInput("reject", text="no")),
        (
            APPROVAL,
            "each",
            {"call_1": True},
            AnswerInput("approve", items={"c1": True, "c2": False}),
        ),
        (APPROVAL, "each", {}, InvalidAnswer("click_nothing_ticked")),
        (APPROVAL, "each", None, InvalidAnswer("click_malformed")),
        (APPROVAL, "approve", {"words": "x"}, InvalidAnswer("click_malformed")),
        (PLAN, "edit", {"steps": "one\ntwo"}, AnswerInput("approve")),
        (PLAN, "edit", {"steps": "one"}, AnswerInput("approve", edit=PlanEdit(("one",)))),
        (PLAN, "change", {"steps": "one\ntwo"}, InvalidAnswer("click_unchanged")),
        (PLAN, "change", {"steps": " "}, InvalidAnswer("click_no_steps")),
        (CLARIFY, "say", {"words": "", "chosen": ["2"]}, AnswerInput("text", choices=(2,))),
        (RECOVERY, "approve", None, AnswerInput("approve")),
        (RECOVERY, "say", {"words": "use rg"}, AnswerInput("text", text="use rg")),
        (RECOVERY, "reject", None, AnswerInput("reject")),
        (CLARIFY, "say", {"words": " "}, InvalidAnswer("click_empty")),
        (CLARIFY, "say", {"chosen": ["x"]}, InvalidAnswer("click_malformed")),
    ],
)
def test_clicks_and_their_answers(
    question: Question,
    name: ActionName,
    entered: dict[str, Any] | None,
    answer: AnswerInput | InvalidAnswer,
) -> None:
    assert read_card_answer(ButtonAction(NAME, name), entered, question) == answer


def test_a_long_plan_cannot_be_edited_on_the_card() -> None:
    steps = number_steps(["x" * 600, "y" * 600])
    question = Question(NAME, "plan", "What?", plan=Plan(1, "goal", "complex", steps))
    assert "steps" not in str(answer_controls(question, EN))
    assert steps_as_lines(Plan(1, "g", "simple", number_steps(["a  b", "c"]))) == "a b\nc"


def test_controls_show_options_only_if_all_fit() -> None:
    assert shows_options(Question(NAME, "clarify", "?", options=("red", "green")))
    assert shows_options(CLARIFY)
    assert not shows_options(Question(NAME, "clarify", "?", options=("x" * 80,)))
    assert not shows_options(Question(NAME, "clarify", "?", options=("x\ny",)))


def test_a_form_stands_around_the_panel_with_fields() -> None:
    assert more_panel([plain_text("x")], "More")["tag"] == "collapsible_panel"
    folded = more_panel(answer_controls(APPROVAL, EN).folded, "More")
    assert (folded["tag"], folded["elements"][0]["tag"]) == ("form", "collapsible_panel")
    check_card({"schema": "2.0", "body": {"elements": [folded]}})


ACTION = ButtonAction("question-abc-1", "say", 2)


def test_all_elements_together_are_a_valid_card() -> None:
    submit = button("Send", ACTION, submits=True)
    fields = [
        text_input("words", "hint", "a\nb", "label"),
        checkbox("call_1", "one"),
        select("chosen", "hint", ["one", "two"], multiple=True),
    ]
    elements = [
        plain_text("text", soft=True),
        markdown("**bold**"),
        button_row([button("Yes", ACTION, "primary")]),
        form("say", [*fields, submit]),
    ]
    check_card({"schema": "2.0", "body": {"elements": elements}})


def test_a_button_carries_its_action() -> None:
    behavior = button("Yes", ACTION)["behaviors"][0]
    assert msgspec.convert(behavior["value"], ButtonAction) == ACTION


def test_a_text_input_with_a_value_has_several_lines() -> None:
    field = text_input("steps", "hint", "\n".join("abcde"))
    assert (field["input_type"], field["rows"]) == ("multiline_text", 5)
    assert field["max_length"] == MAX_FIELD_LENGTH
    assert "rows" not in text_input("words", "hint")


def test_options_are_numbered_from_one() -> None:
    options = select("chosen", "hint", ["a", "b"], multiple=False)["options"]
    assert [option["value"] for option in options] == ["1", "2"]

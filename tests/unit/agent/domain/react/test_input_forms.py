"""Forms that calls ask people to fill in: the questions and the reading of answers."""

from typing import Any

import pytest

from internal.agent.domain.answers import AnswerInput, normalize_answer
from internal.agent.domain.ids import QuestionId
from internal.agent.domain.questions import Answer, Decision
from internal.agent.domain.react.input_forms import (
    DECLINE,
    LEAVE_OUT,
    MAX_OFFERED,
    CallInput,
    FieldKind,
    InputField,
    InputForm,
    InputRequest,
    InputResponse,
)

MANY = tuple(f"v{n}" for n in range(MAX_OFFERED + 1))


def asking(*fields: InputField, url: str = "") -> CallInput:
    return CallInput(InputRequest("The MCP server “s”", (InputForm("k", "M?", fields, url),)))


def field(kind: FieldKind, **more: Any) -> InputField:
    return InputField("x", kind, "X", **{"required": True, **more})


def choice(*values: str, kind: FieldKind = "choice", **more: Any) -> InputField:
    return field(kind, values=values, labels=tuple(value.upper() for value in values), **more)


def answered(
    asked: CallInput,
    text: str = "",
    *,
    decision: Decision = "text",
    choices: tuple[int, ...] = (),
) -> CallInput:
    """Return the request after an answer as a channel submits it."""
    question = asked.question(QuestionId("q"), "c")
    if decision != "expired":
        given = normalize_answer(question, AnswerInput(decision, text, choices=choices))
        text, choices = given.text, given.choices
    return asked.with_answer(Answer(QuestionId("q"), decision, "ada", "web", text, choices=choices))


def value_of(asked: CallInput) -> Any:
    (response,) = asked.responses
    assert response.action == "accept"
    return response.values.get("x")


@pytest.mark.parametrize(
    ("one", "text", "value"),
    [
        (field("text"), " Ada ", "Ada"),
        (field("text", format="email"), "a@b.c", "a@b.c"),
        (field("text", format="date"), "2026-11-24", "2026-11-24"),
        (field("text", format="date-time"), "2026-11-24T10:00:00+00:00", None),
        (field("text", format="uri"), "https://a.b/c", "https://a.b/c"),
        (field("text", format="unknown"), "anything", "anything"),
        (field("integer", minimum=1, maximum=4), "4", 4),
        (field("number"), "2.5", 2.5),
        (field("number"), "2", 2),
        (field("boolean"), "是", True),
        (field("boolean"), "No.", False),
        (choice("a", "b"), "B", "b"),
        (choice("a", "b"), "a", "a"),
        (choice(*MANY), "v7", "v7"),
        (choice("a", "b", kind="choices"), "a, B, a", ["a", "b"]),
        (field("text", required=False), LEAVE_OUT, None),
        (field("integer", default=3), "Use the default: 3", 3),
    ],
)
def test_a_text_is_read_as_its_type(one: InputField, text: str, value: Any) -> None:
    found = value_of(answered(asking(one), text))
    assert found == (text if value is None and one.format else value)
    assert type(found) is type(value) or one.format


@pytest.mark.parametrize(
    ("one", "text", "problem"),
    [
        (field("text", minimum=2), "x", "That does not fit: at least 2 characters."),
        (field("text", maximum=2), "xyz", "That does not fit: at most 2 characters."),
        (field("text", format="email"), "nobody", "That is not a valid email."),
        (field("text", format="date"), "soon", "That is not a valid date."),
        (field("text", format="uri"), "http://[", "That is not a valid uri."),
        (field("integer"), "2.5", "That is not a whole number."),
        (field("integer"), "9" * 5_000, "That is not a whole number."),
        (field("integer"), "9" * 20, "That number is too large."),
        (field("number"), "inf", "That number is too large."),
        (field("number", minimum=0.5), "0.1", "That does not fit: at least 0.5."),
        (field("boolean"), "perhaps", "Answer yes or no."),
        (choice("a", "b"), "c", "That is none of the values to choose from."),
        (choice("a", kind="choices", minimum=2), "a", "That does not fit: at least 2 choices."),
    ],
)
def test_an_answer_that_does_not_fit_is_asked_again(
    one: InputField, text: str, problem: str
) -> None:
    again = answered(asking(one), text)
    assert again.responses == ()
    assert again.question(QuestionId("q"), "c").body.startswith(f"{problem}\n")


def test_the_third_answer_that_does_not_fit_declines_the_form() -> None:
    asked = asking(field("integer"))
    for _ in range(3):
        assert not asked.is_complete
        asked = answered(asked, "x")
    assert asked.responses == (InputResponse("k", "decline"),)


@pytest.mark.parametrize("decision", ["reject", "expired"])
def test_a_refusal_declines_the_form_without_its_values(decision: Decision) -> None:
    asked = answered(asking(field("text"), field("text")), "first")
    assert answered(asked, decision=decision).responses == (InputResponse("k", "decline"),)


@pytest.mark.parametrize(
    "one", [field("text"), field("boolean"), choice("a"), choice("a", kind="choices")]
)
def test_every_question_offers_to_decline(one: InputField) -> None:
    asked = asking(one)
    options = asked.question(QuestionId("q"), "c").options
    assert options[-1] == DECLINE
    declined = answered(asked, choices=(len(options),))
    assert declined.responses == (InputResponse("k", "decline"),)


def test_several_choices_are_one_value() -> None:
    asked = asking(choice("a", "b", "c", kind="choices"))
    assert asked.question(QuestionId("q"), "c").multiple
    assert value_of(answered(asked, choices=(1, 3))) == ["a", "c"]


def test_options_are_told_apart_by_number_and_not_by_text() -> None:
    asked = asking(
        InputField("x", "choice", "X", "", required=True, values=("a",), labels=(DECLINE,))
    )
    assert value_of(answered(asked, choices=(1,))) == "a"
    assert answered(asked, choices=(2,)).responses == (InputResponse("k", "decline"),)


@pytest.mark.parametrize(
    ("one", "value"),
    [
        (field("boolean"), True),
        (field("integer", default=3), 3),
        (field("text", required=False), None),
    ],
)
def test_a_bare_yes_takes_what_is_offered(one: InputField, value: Any) -> None:
    assert value_of(answered(asking(one), decision="approve")) == value


def test_a_bare_yes_is_no_value() -> None:
    assert answered(asking(field("text")), decision="approve").problem == "A value is needed."


def test_an_address_is_confirmed_or_declined() -> None:
    asked = asking(url="https://a.b")
    assert answered(asked, "done").responses == (InputResponse("k", "accept"),)
    assert answered(asked, "no").responses == (InputResponse("k", "decline"),)


def test_a_form_without_fields_is_confirmed() -> None:
    question = asking().question(QuestionId("q"), "c")
    assert question.options == ("Yes", DECLINE)
    assert answered(asking(), choices=(1,)).responses == (InputResponse("k", "accept"),)


def test_forms_are_answered_one_after_the_other() -> None:
    one = InputForm("1", "First?", (field("text"),))
    two = InputForm("2", "Second?", (field("integer"),))
    asked = CallInput(InputRequest("S", (one, two), "state"))
    asked = answered(asked, "a")
    assert asked.question(QuestionId("q"), "c").title == "S asks: Second?"
    asked = answered(asked, "2")
    assert asked.is_complete
    assert [each.values for each in asked.reply.responses] == [{"x": "a"}, {"x": 2}]
    assert asked.reply.state == "state"


def test_a_long_list_is_typed() -> None:
    question = asking(choice(*MANY)).question(QuestionId("q"), "c")
    assert question.options == (DECLINE,)
    assert "Type one of: V0, V1" in question.body

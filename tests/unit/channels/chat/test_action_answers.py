"""Answers by the buttons and forms of a question's post."""

from typing import Any

import pytest

from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.ids import RunId
from internal.channels.chat.action_answers import ActionAnswers
from internal.channels.chat.transport import ChatAction
from internal.i18n.chat import ChatPhrases
from tests.support.chat_texts import EN_TEXTS
from tests.unit.channels.chat.conftest import EchoApp

EN = ChatPhrases("en")


@pytest.fixture
def answered() -> list[RunId]:
    return []


@pytest.fixture
def actions(app: EchoApp, answered: list[RunId]) -> ActionAnswers:
    return ActionAnswers(
        app.transport, app.gateway, app.users, texts=EN_TEXTS, on_answered=answered.append
    )


def action(**changes: Any) -> ChatAction:
    blue = AnswerInput("text", "blue")
    made = ChatAction("question-abcd-1", "mei", "direct", "post-1", lambda _: blue)
    return made._replace(**changes)


async def test_an_action_answers_its_question(
    app: EchoApp, actions: ActionAnswers, answered: list[RunId]
) -> None:
    record = await app.ask()
    result = await actions.handle(action())
    assert (result.level, result.text) == ("success", EN("asked_answered"))
    assert result.question is not None
    assert result.question.record.status == "answered"
    assert answered == [record.run_id]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"question_id": "question-none-1"}, "click_unknown"),
        ({"chat_id": "elsewhere"}, "click_unknown"),
        ({"message_id": "post-9"}, "click_unknown"),
        ({"user_id": "guest"}, "click_asker"),
        ({"read_answer": lambda _: "click_empty"}, "click_empty"),
    ],
)
async def test_an_action_that_does_not_fit_is_refused(
    app: EchoApp, actions: ActionAnswers, changes: dict[str, Any], key: str
) -> None:
    await app.ask()
    result = await actions.handle(action(**changes))
    assert (result.level, result.text, result.question) == ("warning", EN(key), None)


async def test_an_invalid_answer_is_refused(app: EchoApp, actions: ActionAnswers) -> None:
    await app.ask()
    result = await actions.handle(action(read_answer=lambda _: AnswerInput("text", choices=(3,))))
    assert result.level == "warning"


async def test_a_late_action_shows_the_answer(app: EchoApp, actions: ActionAnswers) -> None:
    await app.ask()
    await actions.handle(action())
    result = await actions.handle(action())
    assert result.level == "info"
    assert result.text.startswith("Already answered by you")
    assert result.question is not None

"""Questions are answered with messages and with actions."""

from collections.abc import Coroutine, Generator
from typing import Any

import pytest

from internal.agent.domain.answers import AnswerInput, matches_id
from internal.agent.domain.ids import QuestionId, RunId
from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.chat.answers import ActionAnswers, CommandResult
from internal.channels.chat.question_text import short_id
from internal.channels.chat.transport import ChatAction
from internal.i18n.chat import ChatPhrases
from tests.support.chat_texts import EN_TEXTS
from tests.support.echo_app import EchoApp


async def test_a_text_answers_the_only_open_question(app: EchoApp) -> None:
    record = await app.ask()
    result = await app.answers.answer(await app.message("blue"), "blue")
    assert isinstance(result, CommandResult)
    assert (result.settled, result.run_id) == (True, record.run_id)
    answered = await app.gateway.queries.question(record.question.id, LOCAL_OWNER)
    assert answered.answer is not None
    assert (answered.answer.text, answered.answer.name) == ("blue", "Mei")


async def test_a_text_of_another_person_is_no_answer(app: EchoApp) -> None:
    await app.ask()
    message = await app.message("blue", "guest", "talk")
    assert await app.answers.answer(message, "blue") is None


async def test_with_two_open_questions_only_a_quote_answers(app: EchoApp) -> None:
    await app.ask(1)
    second = await app.ask(2)
    assert await app.answers.answer(await app.message("blue"), "blue") is None
    exact = await app.answers.answer(await app.message("ok"), "ok")
    assert isinstance(exact, CommandResult)
    assert "abcd-1"[-6:] in exact.text
    quoted = await app.answers.answer(await app.message("blue", quoted_id="post-2"), "blue")
    assert isinstance(quoted, CommandResult)
    assert quoted.run_id == second.run_id


async def test_a_rejection_has_a_reason(app: EchoApp) -> None:
    record = await app.ask()
    result = await app.answers.reject("not now", await app.message("/reject not now"))
    assert result.settled
    answered = await app.gateway.queries.question(record.question.id, LOCAL_OWNER)
    assert answered.answer is not None
    assert (answered.answer.decision, answered.answer.text) == ("reject", "not now")


async def test_an_unknown_id_is_named(app: EchoApp) -> None:
    await app.ask()
    message = await app.message("/approve zzzz-9")
    result = await app.answers.approve("zzzz-9", message)
    assert result.text == message.phrases("unknown_question", wanted="zzzz-9")


async def test_a_late_answer_names_the_first(app: EchoApp) -> None:
    await app.ask()
    await app.answers.answer(await app.message("blue"), "blue")
    late = await app.answers.answer(await app.message("ok", quoted_id="post-1"), "ok")
    assert isinstance(late, CommandResult)
    assert late.text.startswith("Already answered by you")


async def test_open_questions_are_listed(app: EchoApp) -> None:
    await app.ask()
    assert "Which colour?" in await app.answers.list_open(await app.message("/questions"))


@pytest.mark.parametrize(
    ("wanted", "expected"), [("abcd-1", True), ("ABCD-1", True), ("-1", False), ("abcd-2", False)]
)
def test_an_id_is_named_by_its_end(wanted: str, expected: bool) -> None:
    assert matches_id("question-abcd-1", wanted) is expected
    assert short_id("question-abcd-1") == "abcd-1"


EN = ChatPhrases("en")


@pytest.fixture
def answered() -> list[RunId]:
    return []


Work = Coroutine[Any, Any, None]


@pytest.fixture
def started() -> Generator[list[Work]]:
    """Collect work started besides the responses, and close the rest after the test."""
    works: list[Work] = []
    yield works
    for work in works:
        work.close()


@pytest.fixture
def actions(app: EchoApp, answered: list[RunId], started: list[Work]) -> ActionAnswers:
    return ActionAnswers(
        app.transport,
        app.gateway,
        app.users,
        texts=EN_TEXTS,
        on_answered=answered.append,
        start=started.append,
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


async def test_the_name_of_who_answered_is_asked_for_after_the_response(
    app: EchoApp, actions: ActionAnswers, started: list[Work]
) -> None:
    await app.ask()
    result = await actions.handle(action())
    assert result.question is not None
    assert result.question.record.answer is not None
    assert result.question.record.answer.name == ""
    await started[0]
    found = await app.gateway.delivery.get_question(QuestionId("question-abcd-1"))
    assert found is not None
    assert found.record.answer is not None
    assert found.record.answer.name == (await app.transport.display_name("mei"))


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

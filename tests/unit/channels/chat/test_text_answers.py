"""Typed answers to the questions of a chat."""

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.chat.text_answers import matches_id, short_id
from tests.unit.channels.chat.conftest import EchoApp


async def test_a_text_answers_the_only_open_question(app: EchoApp) -> None:
    record = await app.ask()
    result = await app.answers.answer(await app.message("blue"), "blue", "")
    assert result is not None
    assert (result.settled, result.run_id) == (True, record.run_id)
    answered = await app.gateway.queries.question(record.question.id, LOCAL_OWNER)
    assert answered.answer is not None
    assert (answered.answer.text, answered.answer.name) == ("blue", "Mei")


async def test_a_text_of_another_person_is_no_answer(app: EchoApp) -> None:
    await app.ask()
    message = await app.message("blue", "guest", "talk")
    assert await app.answers.answer(message, "blue", "") is None


async def test_with_two_open_questions_only_a_quote_answers(app: EchoApp) -> None:
    await app.ask(1)
    second = await app.ask(2)
    assert await app.answers.answer(await app.message("blue"), "blue", "") is None
    exact = await app.answers.answer(await app.message("ok"), "ok", "")
    assert exact is not None
    assert "abcd-1"[-6:] in exact.text
    quoted = await app.answers.answer(await app.message("blue"), "blue", "post-2")
    assert quoted is not None
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
    await app.answers.answer(await app.message("blue"), "blue", "")
    late = await app.answers.answer(await app.message("ok"), "ok", "post-1")
    assert late is not None
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

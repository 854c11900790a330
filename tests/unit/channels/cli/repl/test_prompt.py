"""The question above the input, and answers from keys and text."""

import json
from typing import Any

import pytest
from prompt_toolkit.buffer import Buffer

from internal.channels.cli.render.text import plain_text
from internal.channels.cli.render.theme import UNICODE
from internal.channels.cli.repl.prompt import Prompt
from tests.support.repl_session import GatewaySession

CALL = {
    "call_id": "call-1",
    "tool": "shell",
    "what": "rm x",
    "risk": "exec",
    "reason": "It removes a file.",
    "rules": ["shell(rm x)"],
}
ANSWER = "/api/questions/question-1/answer"


def record(kind: str = "approval", **more: Any) -> dict[str, Any]:
    texts = ("task_id", "session_id", "channel", "title", "who", "asked", "expires")
    return {
        **dict.fromkeys(texts, ""),
        "question_id": "question-1",
        "run_id": "run-1",
        "kind": kind,
        "status": "open",
        "calls": [CALL] if kind == "approval" else [],
        "answer": None,
        **more,
    }


def new_prompt(gateway: GatewaySession, *records: dict[str, Any]) -> tuple[Prompt, Buffer]:
    gateway.connect()
    gateway.answer("/api/questions", {"questions": []})
    box = Buffer(multiline=True)
    for one in records:
        gateway.session.view.open_question(one)
    return Prompt(gateway.session, box), box


async def armed(gateway: GatewaySession, *records: dict[str, Any]) -> tuple[Prompt, Buffer]:
    """Return a prompt whose question has been visible long enough to take keys."""
    prompt, box = new_prompt(gateway, *records)
    prompt.panel(60, 20)
    question = prompt.question
    assert question is not None
    key = question.keys[0]
    assert not prompt.accepts_key(key)
    await gateway.until(lambda: prompt.accepts_key(key))
    return prompt, box


def printed(gateway: GatewaySession) -> str:
    return "\n".join(plain_text(row) for row in gateway.session.take_rows(60)[0])


async def test_without_a_question_keys_and_text_are_no_answers(gateway: GatewaySession) -> None:
    prompt, _ = new_prompt(gateway)
    assert not prompt.accepts_key("y")
    assert not prompt.submit("yes")
    assert not prompt.discard_draft()
    assert prompt.question_lines() == ()
    assert prompt.mark() == (("class:accent", f"{UNICODE.prompt} "),)


async def test_an_open_question_is_shown_and_counted(gateway: GatewaySession) -> None:
    other = {**record(), "question_id": "question-2"}
    prompt, _ = new_prompt(gateway, record(), other)
    assert "rm x" in "\n".join(plain_text(row) for row in prompt.panel(60, 20))
    assert plain_text(prompt.status()[0]) == "! waiting for you · 1 more"
    assert prompt.mark() == (("class:need", f"{UNICODE.prompt} "),)


async def test_a_key_answers_once_the_question_was_visible(gateway: GatewaySession) -> None:
    prompt, _ = await armed(gateway, record())
    answered = record(status="answered", answer={"decision": "approve"})
    gateway.answer(ANSWER, answered)
    prompt.press("y")
    assert prompt.question is None  # a second key must not answer again
    await gateway.until(lambda: not gateway.session.view.questions)
    assert "rm x" in printed(gateway)


@pytest.mark.parametrize("text", ["no", "move it to the trash instead"])
async def test_any_text_answers_the_question_that_is_shown(
    gateway: GatewaySession, text: str
) -> None:
    other = {**record(), "question_id": "question-2"}
    prompt, _ = await armed(gateway, record(), other)
    gateway.answer(ANSWER, record(status="answered", answer={"decision": "reject"}))
    assert prompt.submit(text)
    await gateway.until(lambda: list(gateway.session.view.questions) == ["question-2"])


async def test_a_draft_of_rules_can_be_discarded(gateway: GatewaySession) -> None:
    prompt, box = await armed(gateway, record())
    prompt.press("p")
    assert prompt.is_drafting
    assert box.text == "shell(rm x)"
    assert prompt.discard_draft()
    assert (prompt.is_drafting, box.text) == (False, "")


async def test_a_draft_ends_when_the_question_is_answered_elsewhere(
    gateway: GatewaySession,
) -> None:
    prompt, box = await armed(gateway, record())
    prompt.press("p")
    gateway.session.view.close_question("question-1", {"decision": "approve"})
    prompt.panel(60, 20)
    assert (prompt.is_drafting, box.text) == (False, "")


async def test_a_later_answer_shows_who_answered_first(gateway: GatewaySession) -> None:
    prompt, _ = await armed(gateway, record("clarify", options=["red", "blue"]))
    gateway.refuse(ANSWER, "Ann has answered already.")
    first = {"decision": "text", "text": "red", "answered_by": "ann", "via": "web", "name": "Ann"}
    gateway.answer("/api/questions/question-1", record("clarify", answer=first))
    assert prompt.submit("blue, please")
    await gateway.until(lambda: not gateway.session.view.questions)
    assert gateway.restored == []


async def test_a_refused_answer_returns_to_the_input(gateway: GatewaySession) -> None:
    prompt, _ = await armed(gateway, record("clarify", options=["red", "blue"]))
    gateway.refuse(ANSWER, "The answer is too long.", 422)
    gateway.answer("/api/questions/question-1", record("clarify"))
    assert prompt.submit("blue, please")
    await gateway.until(lambda: bool(gateway.restored))
    assert gateway.restored == ["blue, please"]
    assert prompt.question is not None


@pytest.mark.parametrize("text", ["yes", "y"])
async def test_a_text_from_before_the_question_says_so(gateway: GatewaySession, text: str) -> None:
    gateway.session.seen = "e-1"
    prompt, box = await armed(gateway, record())
    box.insert_text(text)
    gateway.session.seen = "e-2"
    box.reset()  # as Enter does
    gateway.refuse(ANSWER, "Too early.", code="written_earlier")
    gateway.answer("/api/questions/question-1", record())
    assert prompt.submit(text)
    await gateway.until(lambda: bool(gateway.restored))
    assert [json.loads(body)["seen"] for body in gateway.bodies if body] == ["e-1"]
    assert gateway.restored == [text]
    assert "written before the question: nothing was allowed" in printed(gateway)
    box.insert_text(text)
    gateway.answer(ANSWER, record(status="answered", answer={"decision": "approve"}))
    assert prompt.submit(text)
    await gateway.until(lambda: not gateway.session.view.questions)
    assert [json.loads(body)["seen"] for body in gateway.bodies if body] == ["e-1", "e-2"]


async def test_questions_of_other_sessions_are_counted(gateway: GatewaySession) -> None:
    prompt, _ = new_prompt(gateway)
    gateway.answer("/api/questions", {"questions": [record(session_id="session-2")]})
    await prompt.load_questions()
    assert [plain_text(row) for row in prompt.panel(80, 5)] == [
        "1 open question in another session · /questions"
    ]
    assert prompt.panel(80, 1) == []

"""Card actions get their response within Lark's time limit."""

import asyncio
import json
from typing import Any

from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.ids import QuestionId
from internal.agent.domain.questions import Question
from internal.channels.chat.transport import ActionResult, ChatAction, StopAction, UserAction
from internal.channels.lark.card_actions import MAX_RUNNING, CardActionHandler
from internal.channels.lark.events import EventEnvelope
from tests.support.chat_texts import EN_TEXTS

BUTTON = {"question": "question-1", "act": "approve"}


def event(value: Any, event_id: str = "e1", **changes: Any) -> EventEnvelope:
    action = {
        "operator": {"open_id": "ou_1"},
        "action": {"value": value},
        "context": {"open_message_id": "om_1", "open_chat_id": "oc_1"},
        **changes,
    }
    header = {"event_type": "card.action.trigger", "event_id": event_id}
    return EventEnvelope(json.dumps({"header": header, "event": action}))


async def test_an_action_is_passed_on_once_and_answered_with_a_toast() -> None:
    actions: list[UserAction] = []

    async def on_action(action: UserAction) -> ActionResult:
        actions.append(action)
        return ActionResult("success", "Approved")

    handler = CardActionHandler("cli_1", EN_TEXTS, on_action)
    expected = {"toast": {"type": "success", "content": "Approved"}}
    for _ in range(2):  # the second delivery gets the same response
        assert await handler.handle(event(BUTTON)) == expected
    [action] = actions
    assert isinstance(action, ChatAction)
    assert action[:4] == ("question-1", "ou_1", "oc_1", "om_1")
    question = Question(QuestionId("question-1"), "plan", "Plan")
    assert action.read_answer(question) == AnswerInput("approve")


async def test_the_button_of_a_run_names_the_run_and_who_used_it() -> None:
    actions: list[UserAction] = []

    async def on_action(action: UserAction) -> ActionResult:
        actions.append(action)
        return ActionResult("success", "Stopping…")

    handler = CardActionHandler("cli_1", EN_TEXTS, on_action)
    await handler.handle(event({"run": "run-1"}))
    assert actions == [StopAction("run-1", "ou_1", "oc_1")]


async def test_other_events_are_no_clicks_and_malformed_actions_are_refused() -> None:
    async def on_action(_: UserAction) -> ActionResult:
        raise AssertionError

    handler = CardActionHandler("cli_1", EN_TEXTS, on_action)
    assert not EventEnvelope(b'{"header": {"event_type": "im.message.receive_v1"}}').is_click
    for click, level in ((event(7), "warning"), (event(BUTTON, "e2", operator=7), "error")):
        assert click.is_click
        response = await handler.handle(click)
        assert response["toast"]["type"] == level


async def test_a_failing_action_is_reported_and_does_not_raise() -> None:
    async def on_action(_: UserAction) -> ActionResult:
        raise RuntimeError("broken")

    handler = CardActionHandler("cli_1", EN_TEXTS, on_action)
    response = await handler.handle(event(BUTTON))
    assert response["toast"]["type"] == "error"


async def test_actions_run_at_the_same_time() -> None:
    running = asyncio.Semaphore(0)
    answered = asyncio.Event()

    async def on_action(_: UserAction) -> ActionResult:
        running.release()
        await answered.wait()
        return ActionResult("success", "Approved")

    handler = CardActionHandler("cli_1", EN_TEXTS, on_action)
    clicks = [asyncio.create_task(handler.handle(event(BUTTON, f"e{n}"))) for n in range(20)]
    for _ in clicks:
        await running.acquire()
    answered.set()
    expected = {"toast": {"type": "success", "content": "Approved"}}
    assert [await click for click in clicks] == [expected] * 20


async def test_the_number_of_running_actions_is_bounded() -> None:
    answered = asyncio.Event()

    async def on_action(_: UserAction) -> ActionResult:
        await answered.wait()
        return ActionResult("success", "Approved")

    handler = CardActionHandler("cli_1", EN_TEXTS, on_action)
    names = [f"e{number}" for number in range(MAX_RUNNING)]
    clicks = [asyncio.create_task(handler.handle(event(BUTTON, name))) for name in names]
    await asyncio.sleep(0)
    refused = await handler.handle(event(BUTTON, "one more"))
    assert refused["toast"]["type"] == "error"
    answered.set()
    await asyncio.wait(clicks)
    response = await handler.handle(event(BUTTON, "one more"))
    assert response["toast"]["type"] == "success"

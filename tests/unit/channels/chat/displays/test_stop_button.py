"""The Stop button of a run's message."""

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.chat.displays.stop_button import StopButtonHandler
from internal.channels.chat.transport import ActionResult, StopAction
from tests.support.chat_texts import EN_TEXTS
from tests.support.echo_app import EchoApp


async def press(app: EchoApp, run_id: str, user: str = "mei", chat: str = "direct") -> ActionResult:
    handler = StopButtonHandler(app.transport, app.gateway, app.users, EN_TEXTS)
    return await handler.handle(StopAction(run_id, user, chat))


async def test_the_asker_stops_the_run_once(app: EchoApp) -> None:
    run_id, _ = await app.submit("count", "mei", "talk")
    assert await press(app, run_id) == ActionResult("success", "Stopping…")
    [task] = await app.gateway.queries.tasks(LOCAL_OWNER)
    assert task.status == "cancelled"
    assert await press(app, run_id) == ActionResult("info", "Nothing is running.")


@pytest.mark.parametrize(("user", "chat"), [("guest", "direct"), ("mei", "elsewhere")])
async def test_others_and_other_chats_are_refused(app: EchoApp, user: str, chat: str) -> None:
    run_id, _ = await app.submit("count", "mei", "talk")
    refused = await press(app, run_id, user, chat)
    assert refused.level == "warning"
    [task] = await app.gateway.queries.tasks(LOCAL_OWNER)
    assert task.status == "queued"


async def test_an_unknown_run_is_not_stopped(app: EchoApp) -> None:
    assert (await press(app, "run-nosuch")).level == "warning"

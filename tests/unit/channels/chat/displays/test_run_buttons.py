"""The buttons of a run's reply, by who presses them and where."""

import pytest

from internal.agent.domain.ids import RunId
from internal.channels.chat.displays.run_buttons import RunButtonHandler
from internal.channels.chat.transport import ActionResult, RunAction, RunCommand
from tests.support.chat_texts import EN_TEXTS
from tests.support.echo_app import EchoApp


async def press(
    app: EchoApp, run_id: str, command: RunCommand, user: str = "mei", chat: str = "direct"
) -> tuple[ActionResult, list[RunId]]:
    begun: list[RunId] = []
    handler = RunButtonHandler(
        app.transport, app.gateway, app.users, EN_TEXTS, clock=app.clock, on_run=begun.append
    )
    return await handler.handle(RunAction(command, run_id, user, chat, "card-1")), begun


async def test_a_run_that_has_not_ended_is_not_continued(app: EchoApp) -> None:
    run_id, _ = await app.submit("count", "mei", "talk")
    result, begun = await press(app, run_id, "continue")
    assert result == ActionResult("info", "This was continued before.")
    assert begun == []


@pytest.mark.parametrize(("user", "chat"), [("guest", "direct"), ("mei", "elsewhere")])
@pytest.mark.parametrize("command", ["again", "new"])
async def test_others_and_other_chats_are_refused(
    app: EchoApp, command: RunCommand, user: str, chat: str
) -> None:
    run_id, _ = await app.submit("count", "mei", "talk")
    result, begun = await press(app, run_id, command, user, chat)
    assert result.level == "warning"
    assert begun == []


async def test_an_unknown_run_is_not_continued(app: EchoApp) -> None:
    assert (await press(app, "run-nosuch", "again"))[0].level == "warning"

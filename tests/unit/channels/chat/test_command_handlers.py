"""Commands and their replies."""

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.chat.command_handlers import CommandHandlers
from internal.channels.chat.command_parser import parse_command
from tests.support.web_app import defaults
from tests.unit.channels.chat.conftest import EchoApp


@pytest.fixture
def handlers(app: EchoApp) -> CommandHandlers:
    return CommandHandlers(
        app.gateway,
        app.users,
        app.answers,
        settings=app.settings,
        defaults=defaults(),
        instructions=app.instructions,
    )


async def reply(app: EchoApp, handlers: CommandHandlers, text: str, *who: str) -> str:
    command = parse_command(text)
    assert command is not None
    return (await handlers.handle(command, await app.message(text, *who))).text  # type: ignore[arg-type]  # roles


async def test_without_runs(app: EchoApp, handlers: CommandHandlers) -> None:
    phrases = (await app.message("x")).phrases
    expected = {
        "/stop": "nothing_to_stop",
        "/tasks": "no_tasks",
        "/resume": "nothing_to_resume",
        "/questions": "no_question",
        "/approve": "no_question",
        "/new": "new",
    }
    for text, key in expected.items():
        assert await reply(app, handlers, text) == phrases(key), text
    status = await reply(app, handlers, "/status")
    assert status == f"{phrases('idle')}\n{phrases('not_isolated')}"


async def test_a_mistyped_command_gets_a_suggestion(
    app: EchoApp, handlers: CommandHandlers
) -> None:
    assert "/status" in await reply(app, handlers, "/statos")
    assert "/help" in await reply(app, handlers, "/xyzzy")
    assert "/stop" in await reply(app, handlers, "/help")


async def test_status_and_tasks_name_the_tasks(app: EchoApp, handlers: CommandHandlers) -> None:
    await app.submit("count to ten")
    assert "count to ten" in await reply(app, handlers, "/status")
    assert "count to ten" in await reply(app, handlers, "/tasks")


async def test_new_starts_another_session(app: EchoApp, handlers: CommandHandlers) -> None:
    await app.submit("count")
    assert len(await app.gateway.chats.list_newest("echo", "echo-scope", 5)) == 1
    await reply(app, handlers, "/new")
    assert await app.gateway.chats.list_newest("echo", "echo-scope", 5) == []
    assert len((await app.gateway.queries.sessions(LOCAL_OWNER)).sessions) == 2


async def test_a_task_is_stopped_and_resumed(app: EchoApp, handlers: CommandHandlers) -> None:
    phrases = (await app.message("x")).phrases
    await app.submit("count")
    assert await reply(app, handlers, "/stop", "guest", "talk") == phrases("stop_not_allowed")
    assert await reply(app, handlers, "/stop", "lin", "talk", "operate") == phrases("stopping")
    [task] = await app.gateway.queries.tasks(LOCAL_OWNER)
    assert task.status == "cancelled"
    assert await reply(app, handlers, "/resume nosuch") == phrases("nothing_to_resume")
    assert await reply(app, handlers, f"/resume {task.id[-6:]}") == ""
    statuses = [task.status for task in await app.gateway.queries.tasks(LOCAL_OWNER)]
    assert statuses == ["queued", "cancelled"]


async def test_all_tasks_are_stopped(app: EchoApp, handlers: CommandHandlers) -> None:
    await app.submit("one")
    message = await app.message("two")
    await app.gateway.open_session(message.actor.principal, "echo")
    assert await reply(app, handlers, "/stop all") == message.phrases("stopping_all", count=1)

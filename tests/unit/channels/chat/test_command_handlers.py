"""Commands and their replies."""

from functools import partial

import pytest

from internal.agent.domain.ids import RunId
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Status, Task
from internal.agent.store.database import Write
from internal.channels.chat.command_handlers import MAX_LISTED_SUBTASKS, CommandHandlers
from internal.channels.chat.command_parser import parse_command
from tests.support.web_app import defaults
from tests.unit.channels.chat.conftest import EchoApp


@pytest.fixture
def handlers(app: EchoApp) -> CommandHandlers:
    return CommandHandlers(
        app.gateway,
        app.users,
        app.answers,
        defaults=defaults(),
        instructions=app.instructions,
    )


async def reply(app: EchoApp, handlers: CommandHandlers, text: str, *who: str) -> str:
    command = parse_command(text)
    assert command is not None
    return (await handlers.handle(command, await app.message(text, *who))).text  # type: ignore[arg-type]  # roles


async def stops(app: EchoApp, handlers: CommandHandlers, text: str, *who: str) -> bool:
    """Return True if a command stopped a run that says so itself."""
    command = parse_command(text)
    assert command is not None
    result = await handlers.handle(command, await app.message(text, *who))  # type: ignore[arg-type]  # roles
    assert not (result.text and result.stopped)
    return result.stopped


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
    asks = "Reads without asking; asks before each change and command."
    mode = phrases("mode_is", name="Ask first", meaning=asks)
    assert status == f"{phrases('idle')}\n{phrases('not_isolated')}\n{mode}"


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
    assert await stops(app, handlers, "/stop", "lin", "talk", "operate")
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
    assert await stops(app, handlers, "/stop all")


async def test_tasks_are_a_tree_with_their_subtasks(
    app: EchoApp, handlers: CommandHandlers
) -> None:
    root, _ = await app.submit("compare three sites")
    first, second = [await app.add_subtask(root, number) for number in (1, 2)]
    below = await app.add_subtask(root, 3, "clerk", run_of(first))
    listed = await reply(app, handlers, "/tasks")
    assert listed.splitlines()[2:] == [
        f"- `{(await newest(app)).id[-6:]}` Queued: compare three sites",
        f"    - `{first.id[-6:]}` task 1 · analyst · Queued: read site 1",
        f"        - `{below.id[-6:]}` task 3 · clerk · Queued: read site 3",
        f"    - `{second.id[-6:]}` task 2 · analyst · Queued: read site 2",
    ]


async def test_many_subtasks_of_a_task_are_summed_up(
    app: EchoApp, handlers: CommandHandlers
) -> None:
    root, _ = await app.submit("compare")
    for number in range(1, 31):
        await app.add_subtask(root, number)
    lines = (await reply(app, handlers, "/tasks")).splitlines()
    assert len(lines) == 2 + 1 + MAX_LISTED_SUBTASKS + 1
    assert lines[-1] == "    - … 10 more"


async def test_subtasks_are_no_tasks_of_the_chat(app: EchoApp, handlers: CommandHandlers) -> None:
    root, _ = await app.submit("compare")
    subtask = await app.add_subtask(root, 1)
    message = await app.message("x")
    status = await reply(app, handlers, "/status")
    assert status.startswith("Queued: compare\nSubtasks in progress: 1.")
    [(run, _)] = await app.gateway.chats.list_unfinished("echo", "echo-scope")
    assert run.id == root
    assert await stops(app, handlers, "/stop")
    assert (await newest(app)).status == "cancelled"
    assert await reply(app, handlers, f"/resume {subtask.id}") == message.phrases(
        "nothing_to_resume"
    )


async def test_a_subtask_is_stopped_by_its_id_and_those_left_with_all(
    app: EchoApp, handlers: CommandHandlers
) -> None:
    root, _ = await app.submit("compare")
    first, second = [await app.add_subtask(root, number) for number in (1, 2)]
    phrases = (await app.message("x")).phrases
    assert await reply(app, handlers, f"/stop {first.id[-6:]}") == phrases("stopping")
    assert await status_of(app, first) == "cancelled"
    assert await status_of(app, second) == "queued"
    assert (await newest(app)).status == "queued"
    await app.end(root)
    assert await reply(app, handlers, "/stop") == phrases("nothing_to_stop")
    assert await reply(app, handlers, "/stop all") == phrases("stopping_all", count=1)
    assert await status_of(app, second) == "cancelled"


async def test_a_run_that_waits_for_its_tasks_does_not_wait_for_an_answer(
    app: EchoApp, handlers: CommandHandlers
) -> None:
    root, _ = await app.submit("compare")
    await app.database.write(partial(await_tasks, app, root))
    assert (await reply(app, handlers, "/status")).startswith("Waiting for its tasks: compare")
    assert "Waiting for its tasks" in await reply(app, handlers, "/tasks")


def run_of(task: Task) -> RunId:
    return RunId(task.id.replace("task", "run"))


async def newest(app: EchoApp) -> Task:
    return (await app.gateway.chats.list_newest("echo", "echo-scope", 1))[0]


async def status_of(app: EchoApp, task: Task) -> Status:
    return (await app.gateway.queries.task(task.id, LOCAL_OWNER)).status


def await_tasks(app: EchoApp, run_id: RunId) -> Write[None]:
    run = yield from app.stores.runs.claim(run_id, "worker", lease_until="9", now="1")
    assert run is not None
    assert (yield from app.stores.runs.await_tasks(run_id, run.fence, "9"))
    yield from app.stores.tasks.set_status(run.task_id, "waiting", "await_tasks", now="1")


async def test_a_task_that_was_moved_to_the_background_is_stopped_last(
    app: EchoApp, handlers: CommandHandlers
) -> None:
    await app.submit("watch the log")
    moved = await newest(app)
    await app.gateway.move_to_background(moved.id, LOCAL_OWNER)
    await app.submit("count")
    counting = await newest(app)
    assert counting.id != moved.id
    assert (await reply(app, handlers, "/status")).startswith("Queued: count\n1 more")
    await reply(app, handlers, "/stop")
    assert (await status_of(app, counting), await status_of(app, moved)) == ("cancelled", "queued")
    await reply(app, handlers, "/stop")
    assert await status_of(app, moved) == "cancelled"

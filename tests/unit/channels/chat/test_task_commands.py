"""Commands about tasks and their replies."""

from functools import partial

from internal.agent.domain.ids import RunId
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Status, Task
from internal.agent.store.database import Write
from internal.channels.chat.task_commands import MAX_LISTED_SUBTASKS
from tests.support.echo_app import EchoApp


async def reply(app: EchoApp, text: str, *who: str) -> str:
    return (await app.command(text, *who)).text


async def stops(app: EchoApp, text: str, *who: str) -> bool:
    """Return True if a command stopped a run that reports its stop itself."""
    result = await app.command(text, *who)
    assert not (result.text and result.stopped)
    return result.stopped


async def test_without_runs(app: EchoApp) -> None:
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
        assert await reply(app, text) == phrases(key), text
    status = await reply(app, "/status")
    asks = "Reads without asking; asks before each change and command."
    mode = phrases("mode_is", name="Ask first", meaning=asks)
    assert status == f"{phrases('idle')}\n{phrases('not_isolated')}\n{mode}"


async def test_status_and_tasks_name_the_tasks(app: EchoApp) -> None:
    await app.submit("count to ten")
    assert "count to ten" in await reply(app, "/status")
    assert "count to ten" in await reply(app, "/tasks")


async def test_new_starts_another_session(app: EchoApp) -> None:
    await app.submit("count")
    assert len(await app.gateway.chats.list_newest("echo", "echo-scope", 5)) == 1
    await reply(app, "/new")
    assert await app.gateway.chats.list_newest("echo", "echo-scope", 5) == []
    assert len((await app.gateway.queries.sessions(LOCAL_OWNER)).sessions) == 2


async def test_a_task_is_stopped_and_resumed(app: EchoApp) -> None:
    phrases = (await app.message("x")).phrases
    await app.submit("count")
    assert await reply(app, "/stop", "guest", "talk") == phrases("stop_not_allowed")
    assert await stops(app, "/stop", "lin", "talk", "operate")
    [task] = await app.gateway.queries.tasks(LOCAL_OWNER)
    assert task.status == "cancelled"
    assert await reply(app, "/resume nosuch") == phrases("nothing_to_resume")
    assert await reply(app, f"/resume {task.id[-6:]}") == ""
    statuses = [task.status for task in await app.gateway.queries.tasks(LOCAL_OWNER)]
    assert statuses == ["queued", "cancelled"]


async def test_all_tasks_are_stopped(app: EchoApp) -> None:
    await app.submit("one")
    message = await app.message("two")
    await app.gateway.open_session(message.actor.principal, "echo")
    assert await stops(app, "/stop all")


async def test_tasks_are_a_tree_with_their_subtasks(app: EchoApp) -> None:
    root, _ = await app.submit("compare three sites")
    first, second = [await app.add_subtask(root, number) for number in (1, 2)]
    below = await app.add_subtask(root, 3, "clerk", run_of(first))
    listed = await reply(app, "/tasks")
    assert listed.splitlines()[2:] == [
        f"- `{(await newest(app)).id[-6:]}` Queued: compare three sites",
        f"    - `{first.id[-6:]}` task 1 · analyst · Queued: read site 1",
        f"        - `{below.id[-6:]}` task 3 · clerk · Queued: read site 3",
        f"    - `{second.id[-6:]}` task 2 · analyst · Queued: read site 2",
    ]


async def test_many_subtasks_of_a_task_are_summed_up(app: EchoApp) -> None:
    root, _ = await app.submit("compare")
    for number in range(1, 31):
        await app.add_subtask(root, number)
    lines = (await reply(app, "/tasks")).splitlines()
    assert len(lines) == 2 + 1 + MAX_LISTED_SUBTASKS + 1
    assert lines[-1] == "    - … 10 more"


async def test_subtasks_are_no_tasks_of_the_chat(app: EchoApp) -> None:
    root, _ = await app.submit("compare")
    subtask = await app.add_subtask(root, 1)
    message = await app.message("x")
    status = await reply(app, "/status")
    assert status.startswith("Queued: compare\nSubtasks in progress: 1.")
    [(run, _)] = await app.gateway.chats.list_unfinished("echo", "echo-scope")
    assert run.id == root
    assert await stops(app, "/stop")
    assert (await newest(app)).status == "cancelled"
    assert await reply(app, f"/resume {subtask.id}") == message.phrases("nothing_to_resume")


async def test_a_subtask_is_stopped_by_its_id_and_those_left_with_all(app: EchoApp) -> None:
    root, _ = await app.submit("compare")
    first, second = [await app.add_subtask(root, number) for number in (1, 2)]
    phrases = (await app.message("x")).phrases
    assert await reply(app, f"/stop {first.id[-6:]}") == phrases("stopping")
    assert await status_of(app, first) == "cancelled"
    assert await status_of(app, second) == "queued"
    assert (await newest(app)).status == "queued"
    await app.end(root)
    assert await reply(app, "/stop") == phrases("nothing_to_stop")
    assert await reply(app, "/stop all") == phrases("stopping_all", count=1)
    assert await status_of(app, second) == "cancelled"


async def test_a_run_that_waits_for_its_tasks_does_not_wait_for_an_answer(app: EchoApp) -> None:
    root, _ = await app.submit("compare")
    await app.database.write(partial(await_tasks, app, root))
    assert (await reply(app, "/status")).startswith("Waiting for its tasks: compare")
    assert "Waiting for its tasks" in await reply(app, "/tasks")


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


async def test_a_task_that_was_moved_to_the_background_is_stopped_last(app: EchoApp) -> None:
    await app.submit("watch the log")
    moved = await newest(app)
    await app.gateway.move_to_background(moved.id, LOCAL_OWNER)
    await app.submit("count")
    counting = await newest(app)
    assert counting.id != moved.id
    assert (await reply(app, "/status")).startswith("Queued: count\n1 more")
    await reply(app, "/stop")
    assert (await status_of(app, counting), await status_of(app, moved)) == ("cancelled", "queued")
    await reply(app, "/stop")
    assert await status_of(app, moved) == "cancelled"

"""Messages become tasks, steering or interruptions, as the busy mode says."""

from internal.agent.domain.chats import ChatSettings
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.principals import LOCAL_OWNER
from tests.support.chat_settings import with_values
from tests.support.echo_app import CHAT, EchoApp


async def test_a_message_steers_the_unfinished_run(app: EchoApp) -> None:
    first, first_steers = await app.submit("count")
    second, second_steers = await app.submit("in French")
    assert first == second
    assert (first_steers, second_steers) == (False, True)


async def test_a_message_is_queued(app: EchoApp) -> None:
    app.settings = with_values(app.settings, busy_mode="queue")
    assert (await app.submit("one"))[0] != (await app.submit("two"))[0]
    statuses = [task.status for task in await app.gateway.queries.tasks(LOCAL_OWNER)]
    assert statuses == ["queued", "queued"]


async def test_only_the_asker_and_operators_interrupt(app: EchoApp) -> None:
    app.settings = with_values(app.settings, busy_mode="interrupt")
    for user, roles in (("mei", ("talk",)), ("guest", ("talk",)), ("lin", ("talk", "operate"))):
        await app.submit("count", user, *roles)
    unfinished = await app.gateway.chats.list_unfinished("echo", "echo-scope")
    assert len(unfinished) == 3  # a queued run is not interrupted, it is the next one


async def test_a_run_has_the_settings_of_its_chat(app: EchoApp) -> None:
    await app.gateway.chats.save_settings(CHAT, ChatSettings("always", "big-1"))
    await app.submit("count")
    [task] = await app.gateway.queries.tasks(LOCAL_OWNER)
    spec = task.spec
    assert (spec.model, spec.plan_review, spec.workspace) == ("big-1", "always", "")
    assert spec.policy.mode == Mode.ASK


async def test_subtasks_do_not_keep_messages_waiting(app: EchoApp) -> None:
    root, _ = await app.submit("compare")
    await app.add_subtask(root, 1)
    await app.end(root)
    _, is_waiting = await app.submit("next")
    assert not is_waiting

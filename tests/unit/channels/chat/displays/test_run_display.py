"""Assignment of a run's display to one process, and its stored state."""

import asyncio

from internal.agent.app.run_displays import DisplayHolder
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.chats import OutgoingMessage, PendingMessage, reply_key
from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.chat.displays.run_display import MAX_REPLACE_ATTEMPTS, RunDisplayLoop
from internal.settings.chat import ChatChannelSettings
from tests.support.chat_settings import with_values
from tests.support.chat_texts import EN_TEXTS
from tests.support.echo_app import EchoApp


def display_loop(app: EchoApp, settings: ChatChannelSettings) -> RunDisplayLoop:
    return RunDisplayLoop(
        app.transport,
        app.gateway,
        app.clock,
        settings=settings,
        texts=EN_TEXTS,
        on_outgoing=lambda: None,
        isolated=False,
    )


def reply_of(run_id: str, key: str = "", attempts: int = 0) -> PendingMessage:
    outgoing = OutgoingMessage(
        key or reply_key(run_id), "echo", "test", "direct", "m1", "42", run_id=run_id
    )
    return PendingMessage(1, outgoing, attempts, None)


async def test_a_reply_replaces_the_message_that_any_process_handed_over(app: EchoApp) -> None:
    run_id, _ = await app.submit("count")
    loop = display_loop(app, app.settings)
    assert await loop.find_reply_place(reply_of(run_id)) == ""
    other = DisplayHolder("echo:test", "another process")
    claimed = await app.gateway.run_displays.claim(run_id, other, 60.0)
    assert claimed is not None
    working = claimed.display._replace(state='{"sending": true, "message": "card"}')
    await app.gateway.run_displays.save(working, other, 60.0)
    finding = asyncio.create_task(loop.find_reply_place(reply_of(run_id)))
    ended = working._replace(state='{"message": "card", "ended": true, "reply_place": "card"}')
    await app.gateway.run_displays.save(ended, other, 60.0)
    assert await finding == "card"
    await app.gateway.run_displays.close(ended, other)
    assert await loop.find_reply_place(reply_of(run_id)) == "card"
    assert await loop.find_reply_place(reply_of(run_id, attempts=MAX_REPLACE_ATTEMPTS)) == ""
    assert await loop.find_reply_place(reply_of(run_id, "question:asked")) == ""


async def test_a_display_is_held_by_one_process_until_it_is_released(app: EchoApp) -> None:
    run_id, _ = await app.submit("count")
    [(run, task)] = await app.gateway.chats.list_unfinished("echo", "echo-scope")
    message_id = task.origin.message_id
    settings = with_values(app.settings, react_emoji="Typing")
    loops = [display_loop(app, settings) for _ in range(2)]
    running = [asyncio.create_task(loop.run(Supervisor(app.clock))) for loop in loops]
    await app.service.until(lambda: bool(app.service.reactions.get(message_id)))
    assert run.id == run_id
    assert app.service.reactions[message_id] == ["working"]
    assert await app.gateway.run_displays.list_abandoned("echo:test") == []
    for task_ in running:
        task_.cancel()
    await asyncio.wait(running)
    for loop in loops:
        await loop.release()
    [display] = await app.gateway.run_displays.list_abandoned("echo:test")
    assert display.run_id == run_id


async def test_nothing_is_stored_of_a_run_that_ends_at_once(app: EchoApp) -> None:
    first, _ = await app.submit("count")
    [(_, task)] = await app.gateway.chats.list_unfinished("echo", "echo-scope")
    loop = display_loop(app, with_values(app.settings, react_emoji="Typing"))
    running = asyncio.create_task(loop.run(Supervisor(app.clock)))
    # until then it has followed the runs of the process before
    await app.service.until(lambda: bool(app.service.reactions.get(task.origin.message_id)))
    await app.end(first)
    run_id, _ = await app.submit("count again")
    assert run_id != first
    found = await app.gateway.chats.find_run(run_id)
    assert found is not None
    await app.gateway.stop(found[1].id, LOCAL_OWNER, "web")
    loop.follow(run_id)
    assert await loop.find_reply_place(reply_of(run_id)) == ""
    assert await app.gateway.run_displays.get(run_id, "echo:test") is None
    assert await app.gateway.run_displays.get(first, "echo:test") is not None
    running.cancel()
    await asyncio.wait([running])

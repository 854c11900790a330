"""Which process displays a run, and what it stores of it."""

import asyncio

from internal.agent.app.supervision import Supervisor
from internal.channels.chat.displays.run_display import RunDisplayLoop
from tests.support.chat_settings import with_values
from tests.support.chat_texts import EN_TEXTS
from tests.unit.channels.chat.conftest import EchoApp


async def test_a_display_is_held_by_one_process_until_it_is_released(app: EchoApp) -> None:
    run_id, _ = await app.submit("count")
    [(run, task)] = await app.gateway.chats.list_unfinished("echo", "echo-scope")
    message_id = task.origin.message_id
    settings = with_values(app.settings, react_emoji="Typing")
    loops = [
        RunDisplayLoop(
            app.transport,
            app.gateway,
            app.clock,
            settings=settings,
            texts=EN_TEXTS,
            on_outgoing=lambda: None,
        )
        for _ in range(2)
    ]
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

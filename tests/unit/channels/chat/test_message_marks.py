"""Messages that a run received are marked, and done when it has ended."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from internal.agent.app.supervision import Supervisor
from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.chat.message_marks import MessageMarks
from internal.channels.chat.transport import TransportRejected
from tests.support.echo_app import EchoApp


@asynccontextmanager
async def running(app: EchoApp) -> AsyncGenerator[MessageMarks]:
    marks = MessageMarks(app.transport, app.gateway)
    loop = asyncio.create_task(marks.run(Supervisor(app.clock)))
    yield marks
    loop.cancel()
    await asyncio.wait([loop])


async def test_steering_is_done_when_its_run_has_completed(app: EchoApp) -> None:
    message = await app.message("count")
    run_id, _ = await app.router.submit(message, "count")
    name = message.row.message_id
    marks = MessageMarks(app.transport, app.gateway)
    await marks.mark_received(name, None)
    assert app.service.reactions[name] == ["received"]
    assert await app.gateway.delivery.list_settled_reactions("echo", "test", 9) == []
    await app.end(run_id)
    async with running(app):  # another process, which did not mark it
        await app.service.until(lambda: app.service.reactions[name] == ["done"])


@pytest.mark.parametrize("is_answer", [False, True])
async def test_only_what_was_carried_out_is_done_after_a_stop(
    app: EchoApp, *, is_answer: bool
) -> None:
    message = await app.message("count")
    run_id, _ = await app.router.submit(message, "count")
    if is_answer:
        message = await app.message("OK")
        await app.gateway.mark_handled(message.row)
    name = message.row.message_id
    async with running(app) as marks:
        await marks.mark_received(name, run_id if is_answer else None)
        [task] = await app.gateway.queries.tasks(LOCAL_OWNER)
        await app.gateway.stop(task.id, LOCAL_OWNER, "echo")
        last = ["done"] if is_answer else []
        await app.service.until(lambda: app.service.reactions[name] == last)


async def test_a_message_that_cannot_be_marked_stays_as_it_is(app: EchoApp) -> None:
    class Refusing(type(app.transport)):  # type: ignore[misc]  # the class of the echo service
        async def add_reaction(self, *_: object) -> str:
            raise TransportRejected("no emoji here")

    message = await app.message("count")
    marks = MessageMarks(Refusing(app.service), app.gateway)
    await marks.mark_received(message.row.message_id, None)
    assert app.service.reactions == {}

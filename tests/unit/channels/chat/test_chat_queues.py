"""Attempts to process a message are counted, and attempts that do not take place are not."""

import asyncio
from functools import partial

from internal.agent.app.chat_delivery import Acceptance
from internal.agent.domain.chats import AcceptedMessage, InboundMessage
from internal.channels.chat.chat_queues import ChatQueues
from internal.channels.chat.message_handler import MessageHandler, MessageListener
from internal.channels.chat.queued_message import QueuedMessage
from internal.i18n.chat import ChatTexts
from tests.support.echo_app import T0, EchoApp
from tests.support.web_app import defaults


async def test_an_attempt_that_began_with_the_acceptance_and_is_not_made_does_not_count(
    app: EchoApp,
) -> None:
    claim = partial(app.stores.leaderships.claim, "echo:test", "this process", "9999", None)
    leader = await app.database.write(claim)
    row = InboundMessage("echo", "test", "m1", "direct", "echo:test:mei", "{}", T0)
    accepting = app.gateway.delivery.accept(row, wait=1.0, leader=leader)
    assert await asyncio.wrap_future(accepting) is Acceptance.BEGUN
    handler = MessageHandler(
        app.transport,
        app.gateway,
        app.users,
        settings=app.settings,
        defaults=defaults(),
        texts=ChatTexts(),
        listener=MessageListener(lambda _: None, lambda _, __: None, lambda: None),
        instructions=app.instructions,
    )
    queues = ChatQueues(app.transport, app.gateway.delivery, handler)
    queues.take(
        QueuedMessage(AcceptedMessage(row), is_begun=True)
    )  # it does not process messages any more
    await app.gateway.delivery.drop("echo", "test", "", "what was stored before is on disk then")
    found = await app.gateway.delivery.list_accepted("echo", "test", 10)
    assert found == [AcceptedMessage(row)]

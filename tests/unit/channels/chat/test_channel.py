"""A chat channel from start to stop."""

import asyncio
from functools import partial

from internal.agent.app.files.remote_files import RemoteFiles
from internal.agent.app.mentions import MentionTool
from internal.agent.app.runs.question_recipients import QuestionRecipients
from internal.agent.app.supervision import Supervisor
from internal.channels.chat.channel import ChatApp, ChatChannel
from tests.support.chat_texts import EN_TEXTS
from tests.support.echo_app import EchoApp
from tests.support.echo_channel import echo_message
from tests.support.leaderships import make_leaderships
from tests.support.web_app import defaults


async def test_a_message_is_stored_once_with_its_principal(app: EchoApp) -> None:
    services = ChatApp(
        app.gateway,
        defaults(),
        app.clock,
        EN_TEXTS,
        Supervisor(app.clock),
        RemoteFiles(app.gateway.files),
        app.instructions,
        make_leaderships(app.database, app.stores),
        QuestionRecipients(),
        MentionTool(app.database, app.stores),
        "/sessions/{}".format,
    )
    channel = ChatChannel(services, app.settings, app.transport)
    running = asyncio.create_task(channel.run())
    await app.service.until(lambda: bool(app.service.connected))
    assert channel.link.status == "connected"
    message = echo_message("m-1", "/help")
    await app.service.deliver(message)
    await app.service.until(lambda: bool(app.service.posts))
    await app.service.deliver(message)
    known = partial(app.stores.inbox.get_state, "echo", "test", "m-1")
    assert await app.database.read(known) is not None
    channel.stop()
    await running
    assert len(app.service.posts) == 1
    assert app.service.connected == []
    rights = await app.gateway.access.get_rights(app.users.principal_id("mei"))
    assert rights == frozenset()

"""A gateway with the Lark channel, connected to a simulated Lark over real sockets."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.chat.channel import ChatApp, ChatChannel
from internal.channels.lark.channel import LarkTransport
from internal.channels.lark.connection import AppCredentials, ConnectionTimeouts
from internal.channels.lark.history.missed_messages import HistoryLimits
from internal.channels.lark.question_card import is_question_card
from internal.channels.lark.silence_watch import SilenceTimes
from internal.llm.retry import Sleep
from internal.settings.chat import ChatChannelSettings
from internal.simulators.lark.model import App, Chat, ChatMessage, Person
from internal.simulators.lark.simulator import LarkSim
from internal.simulators.lark.websocket.connection import ClientConfig
from larkspur.chat_instructions import make_chat_instructions
from tests.support.agent_app import Core, open_agent
from tests.support.anthropic_server import Reply, Rules
from tests.support.chat_texts import AUTO_TEXTS

APP = App("cli_larkspur_test", "the-secret")
PACE = ConnectionTimeouts(first_delay=0.1, max_delay=0.5, stable_after=5.0)
CONFIG = ClientConfig()
QUIET = ChatChannelSettings(react_emoji="off", progress="off", greeting=False)
"""Settings with which a run has no display besides its reply, and no chat is greeted."""


@dataclass
class LarkGateway:
    """The simulated Lark, the gateway and its channel."""

    sim: LarkSim
    core: Core
    channel: ChatChannel
    transport: LarkTransport

    @property
    def person(self) -> Person:
        return self.sim.people[0]

    @property
    def dm(self) -> Chat:
        return self.sim.dm(self.person)

    @property
    def group(self) -> Chat:
        return self.sim.groups[0]

    async def say(self, text: str, **more: Any) -> str:
        """Send a direct message as the first person; return its id."""
        return await self.sim.send_text(self.person, self.dm, text, **more)

    def from_bot(self, chat: Chat | None = None) -> list[ChatMessage]:
        """Return the bot's messages in a chat, by default the direct one, oldest first."""
        messages = self.sim.messages(chat or self.dm)
        return [one for one in messages if one.sender_type == "app" and not one.deleted]

    def replies(self, chat: Chat | None = None) -> list[str]:
        """Return the texts of the bot's messages, without progress messages."""
        shown = [shown_text(self.sim, one) for one in self.from_bot(chat)]
        return [text for text in shown if text is not None]

    async def until_replies(self, count: int, chat: Chat | None = None) -> list[str]:
        """Return the replies as soon as there are `count`."""
        try:
            await self.sim.until(lambda _: len(self.replies(chat)) >= count)
        except TimeoutError as error:
            error.add_note(f"replies: {self.replies(chat)}; link: {self.channel.link}")
            raise
        return self.replies(chat)

    async def until_connected(self) -> None:
        await self.sim.until(lambda _: bool(self.sim.lark.delivery.connections))

    async def settled(self) -> None:
        """Return when nothing is left to receive, to process, to run or to send."""
        app = self.core.services
        while True:
            heard = all(push.done for push in self.sim.pushes)  # first: what is done is accepted
            accepted = await app.database.read(
                lambda: app.stores.inbox.list_accepted("lark", APP.app_id, 10)
            )
            queries, active = app.gateway.queries, app.dispatcher.active_count
            queued = await queries.tasks(LOCAL_OWNER, status="queued", limit=1)
            running = await queries.tasks(LOCAL_OWNER, status="running", limit=1)
            due = await app.database.read(
                lambda: app.stores.outbox.list_due("lark", APP.app_id, now="9999", limit=10)
            )
            # in the order of a message's way: what leaves one place is in the next one
            if heard and not (accepted or queued or running or active or due):
                return
            await self.sim.lark.changed_within(0.05)


_CHANGED_FILES = re.compile(r"\n\n---\n(Changed files|改动的文件).*\Z", re.DOTALL)
"""The line below an answer with the names of the files that the run changed."""


def shown_text(sim: LarkSim, message: ChatMessage) -> str | None:
    """Return the result of `full_text` without the names of changed files below an answer."""
    text = full_text(sim, message)
    return None if text is None else _CHANGED_FILES.sub("", text)


def full_text(sim: LarkSim, message: ChatMessage) -> str | None:
    """Return the text of a bot message; `None` if it shows progress or a question card."""
    if message.msg_type == "interactive":
        card = sim.card(message.message_id) or {}
        if "header" in card or is_question_card(card):
            return None
        elements = card["body"]["elements"]
        return "\n".join(each["content"] for each in elements if each["tag"] == "markdown")
    content = json.loads(message.content)
    if message.msg_type == "file":
        return f"file {content['file_key']}"
    if message.msg_type == "text":
        return None if content["text"].startswith("⏳") else content["text"]
    return "\n".join(part.get("text", "") for row in content["content"] for part in row)


@asynccontextmanager
async def open_lark_gateway(
    home: Path,
    script: list[Reply] | Rules | Callable[[dict[str, Any]], Reply],
    settings: ChatChannelSettings = QUIET,
    *,
    sim: LarkSim | None = None,
    environ: dict[str, str] | None = None,
    sleep: Sleep = asyncio.sleep,
    silence: SilenceTimes | None = None,
    limits: HistoryLimits | None = None,
) -> AsyncGenerator[LarkGateway]:
    """Open a simulated Lark and a gateway, connected; leaving closes them in order."""
    async with AsyncExitStack() as stack:
        if sim is None:
            sim = await stack.enter_async_context(LarkSim([APP], speed=100.0, config=CONFIG))
        gateway = await stack.enter_async_context(open_agent(home, script, environ, sleep=sleep))
        transport = lark_transport(gateway, sim, settings, silence=silence, limits=limits)
        async with open_lark(gateway, sim, settings, transport=transport) as channel:
            yield LarkGateway(sim, gateway, channel, transport)


def lark_transport(
    gateway: Core,
    sim: LarkSim,
    settings: ChatChannelSettings,
    secret: str = APP.secret,
    *,
    silence: SilenceTimes | None = None,
    limits: HistoryLimits | None = None,
) -> LarkTransport:
    """Return the transport of the app at a simulated Lark, not connected yet."""
    credentials = AppCredentials(APP.app_id, secret, sim.url)
    return LarkTransport(
        credentials,
        settings,
        gateway.services.clock,
        texts=AUTO_TEXTS,
        timeouts=PACE,
        silence=silence,
        limits=limits,
    )


@asynccontextmanager
async def open_lark(
    gateway: Core,
    sim: LarkSim,
    settings: ChatChannelSettings = QUIET,
    secret: str = APP.secret,
    *,
    transport: LarkTransport | None = None,
) -> AsyncGenerator[ChatChannel]:
    """Run the Lark channel of a gateway, connected."""
    services = gateway.services
    app = ChatApp(
        services.gateway,
        services.defaults,
        services.clock,
        AUTO_TEXTS,
        services.supervisor,
        services.remote_files,
        make_chat_instructions(services),
        services.leaderships,
        services.question_recipients,
        services.mentions,
        services.workspaces.folders.path,
        services.settings.server.public_url or "",
    )
    transport = transport or lark_transport(gateway, sim, settings, secret)
    channel = ChatChannel(app, settings, transport)
    running = asyncio.create_task(channel.run())
    try:
        if secret == APP.secret:
            connected = asyncio.create_task(
                sim.until(lambda _: bool(sim.lark.delivery.connections), 60)
            )
            await asyncio.wait([running, connected], return_when=asyncio.FIRST_COMPLETED)
        yield channel
    finally:
        channel.stop()
        await running


def question_line(card: dict[str, Any]) -> str:
    """Return the title of a card with an open question, or the line of a settled one."""
    if "header" in card:
        return str(card["header"]["title"]["content"])
    return str(card["body"]["elements"][0]["header"]["title"]["content"])


def question_outcome(card: dict[str, Any]) -> str:
    """Return how a settled question was decided, as its line says it."""
    return question_line(card).split(" · ")[0].lstrip("✓✗✎○ ").strip("*")

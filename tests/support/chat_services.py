"""Chat services under one interface, so that one contract suite tests every chat channel."""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from internal.agent.app.chat_delivery import ChatDelivery
from internal.agent.domain.answers import AnswerInput
from internal.channels.chat.channel import ChatApp, ChatChannel
from internal.channels.chat.transport import (
    ActionResult,
    ChatAction,
    ChatTransport,
    IncomingMessage,
    QuestionContent,
    RunContent,
    TextContent,
    TransportRejected,
    TransportUnavailable,
)
from internal.settings.chat import ChatChannelSettings
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import ChatMessage
from internal.simulators.lark.simulator import LarkSim
from larkspur.chat_instructions import make_chat_instructions
from tests.support.agent_app import Core
from tests.support.chat_texts import AUTO_TEXTS
from tests.support.echo_channel import EchoService, EchoTransport, echo_message
from tests.support.lark_gateway import APP, CONFIG, full_text, lark_transport


class ChatService(ABC):
    """A person in two chats with the bot: `0` and `1`."""

    name: str
    app: str

    @abstractmethod
    def transport(self, core: Core, settings: ChatChannelSettings) -> ChatTransport:
        """Return a new transport, not connected yet."""

    @abstractmethod
    async def connected(self) -> None:
        """Return when a transport is connected."""

    @abstractmethod
    async def say(self, text: str, chat: int = 0, quoted: str = "") -> str:
        """Send a message to the bot and return its id."""

    @abstractmethod
    async def redeliver(self, message_id: str) -> None:
        """Deliver a message again."""

    @abstractmethod
    def replies(self, chat: int = 0) -> list[tuple[str, str]]:
        """Return the texts of the bot and the ids of the messages they reply to."""

    @abstractmethod
    def questions(self, chat: int = 0) -> list[str]:
        """Return the ids of the posts that ask or asked a question."""

    @abstractmethod
    def is_settled(self, message_id: str) -> bool:
        """Return True if a question's post shows that it was answered."""

    @abstractmethod
    async def approve(self, message_id: str) -> str:
        """Activate the button that approves and return the response."""

    @abstractmethod
    def displays(self) -> list[str]:
        """Return the phase titles of the posts with the progress of a run."""

    @abstractmethod
    def reactions(self, message_id: str) -> list[str]:
        """Return the bot's reactions on a message."""

    @abstractmethod
    def fail_sends(self, count: int) -> None:
        """Reject the next sends as temporarily unavailable."""

    @abstractmethod
    def reject_sends(self) -> None:
        """Reject the next reply in every form."""

    @abstractmethod
    async def until(self, condition: Callable[[], bool]) -> None:
        """Return as soon as the condition holds."""


class EchoChat(ChatService):
    """The service in memory."""

    name, app = "echo", "test"

    def __init__(self) -> None:
        self.service = EchoService()
        self._sent: dict[str, IncomingMessage] = {}

    def transport(self, core: Core, settings: ChatChannelSettings) -> ChatTransport:
        return EchoTransport(self.service)

    async def connected(self) -> None:
        await self.service.until(lambda: bool(self.service.connected))

    async def say(self, text: str, chat: int = 0, quoted: str = "") -> str:
        message = echo_message(self.service.new_id(), text, f"chat{chat}", quoted_id=quoted)
        self._sent[message.message_id] = message
        await self.service.deliver(message)
        return message.message_id

    async def redeliver(self, message_id: str) -> None:
        await self.service.deliver(self._sent[message_id])

    def replies(self, chat: int = 0) -> list[tuple[str, str]]:
        return [
            (post.content.text, post.reply_to)
            for post in self.service.posts
            if isinstance(post.content, TextContent) and post.chat_id == f"chat{chat}"
        ]

    def questions(self, chat: int = 0) -> list[str]:
        return [
            post.message_id
            for post in self.service.posts
            if isinstance(post.content, QuestionContent) and post.chat_id == f"chat{chat}"
        ]

    def is_settled(self, message_id: str) -> bool:
        return self._question(message_id).record.status != "open"

    async def approve(self, message_id: str) -> str:
        question = self._question(message_id).record.question
        result: ActionResult = await self.service.act(
            ChatAction(question.id, "mei", "chat0", message_id, lambda _: AnswerInput("approve"))
        )
        return result.text

    def displays(self) -> list[str]:
        contents = [post.content for post in self.service.posts]
        return [content.title for content in contents if isinstance(content, RunContent)]

    def reactions(self, message_id: str) -> list[str]:
        return self.service.reactions.get(message_id, [])

    def fail_sends(self, count: int) -> None:
        self.service.failures += [TransportUnavailable("busy", 0.1) for _ in range(count)]

    def reject_sends(self) -> None:
        self.service.failures.append(TransportRejected("not in this chat"))

    async def until(self, condition: Callable[[], bool]) -> None:
        await self.service.until(condition)

    def _question(self, message_id: str) -> QuestionContent:
        post = next(each for each in self.service.posts if each.message_id == message_id)
        assert isinstance(post.content, QuestionContent)
        return post.content


class LarkChat(ChatService):
    """The simulated Lark; the two chats are the direct chats of two people."""

    name, app = "lark", APP.app_id

    def __init__(self, sim: LarkSim) -> None:
        self.sim = sim

    def transport(self, core: Core, settings: ChatChannelSettings) -> ChatTransport:
        return lark_transport(core, self.sim, settings)

    async def connected(self) -> None:
        await self.sim.until(lambda _: bool(self.sim.lark.delivery.connections), 60)

    async def say(self, text: str, chat: int = 0, quoted: str = "") -> str:
        person = self.sim.people[chat]
        more = {"reply_to": quoted} if quoted else {}
        return await self.sim.send_text(person, self.sim.dm(person), text, **more)

    async def redeliver(self, message_id: str) -> None:
        self.sim.redeliver(message_id)
        await self.sim.until(lambda _: all(push.done for push in self.sim.pushes))

    def replies(self, chat: int = 0) -> list[tuple[str, str]]:
        shown = [(full_text(self.sim, one), one.parent_id) for one in self._posts(chat)]
        return [(text, reply_to) for text, reply_to in shown if text is not None]

    def questions(self, chat: int = 0) -> list[str]:
        return [one.message_id for one in self._posts(chat) if '"question_' in self._card(one)]

    def is_settled(self, message_id: str) -> bool:
        return "button" not in json.dumps(self.sim.card(message_id))

    async def approve(self, message_id: str) -> str:
        response = await self.sim.click(self.sim.people[0], message_id, "Allow once")
        return str(response["toast"]["content"])

    def displays(self) -> list[str]:
        cards = [
            self.sim.card(one.message_id) or {}
            for one in self._posts(0)
            if '"question_' not in self._card(one)
        ]
        return [str(card["header"]["title"]["content"]) for card in cards if "header" in card]

    def reactions(self, message_id: str) -> list[str]:
        emojis = {"Typing": "working", "OnIt": "received", "DONE": "done"}
        found = self.sim.lark.state.messages[message_id].reactions
        return [emojis[each.emoji] for each in found]

    def fail_sends(self, count: int) -> None:
        self.sim.faults.answers.append(AnswerFault("code", "/reply", times=count + 2, code=230020))

    def reject_sends(self) -> None:
        self.sim.faults.answers.append(AnswerFault("code", "/reply", times=1, code=230002))

    async def until(self, condition: Callable[[], bool]) -> None:
        await self.sim.until(lambda _: condition())

    def _posts(self, chat: int) -> list[ChatMessage]:
        messages = self.sim.messages(self.sim.dm(self.sim.people[chat]))
        return [one for one in messages if one.sender_type == "app" and not one.deleted]

    def _card(self, message: ChatMessage) -> str:
        return json.dumps(self.sim.card(message.message_id) or {})


@asynccontextmanager
async def open_service(name: str) -> AsyncGenerator[ChatService]:
    """Open a chat service by the name of its channel."""
    async with AsyncExitStack() as stack:
        if name == "echo":
            yield EchoChat()
        else:
            sim = LarkSim([APP], speed=100.0, config=CONFIG)
            yield LarkChat(await stack.enter_async_context(sim))


@asynccontextmanager
async def open_channel(
    service: ChatService,
    core: Core,
    settings: ChatChannelSettings,
    change: Callable[[ChatTransport], ChatTransport] = lambda transport: transport,
) -> AsyncGenerator[ChatChannel]:
    """Run a channel at a service, connected; leaving stops it in order.

    `change` returns the transport that the channel uses instead of the given one.
    """
    services = core.services
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
    )
    channel = ChatChannel(app, settings, change(service.transport(core, settings)))
    running = asyncio.create_task(channel.run())
    try:
        await service.connected()
        yield channel
    finally:
        channel.stop()
        await running


async def until_idle(service: ChatService, core: Core) -> None:
    """Return when nothing is left to process, to run or to send."""
    delivery: ChatDelivery = core.services.gateway.delivery
    while True:
        accepted = await delivery.list_accepted(service.name, service.app, 10)
        due = await delivery.list_due(service.name, service.app, 10)
        if not accepted and not due and not core.services.dispatcher.active_count:
            return
        await _pause()


async def eventually(condition: Callable[[], bool]) -> None:
    """Return as soon as the condition holds; for states that no service reports."""
    async with asyncio.timeout(60):
        while not condition():
            await _pause()


async def until_given_up(channel: ChatChannel) -> None:
    """Return as soon as a message of the channel was given up."""
    async with asyncio.timeout(60):
        while not (await channel.backlog()).given_up:
            await _pause()


async def _pause() -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(0.02):
            await asyncio.Event().wait()

"""`LarkSim`: the simulator as a whole, in process or behind the command."""

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from starlette.applications import Starlette

from internal.simulators.lark import chat_page, user_actions
from internal.simulators.lark.cards import clicks
from internal.simulators.lark.control.api import ControlApi
from internal.simulators.lark.faults import Faults
from internal.simulators.lark.model import App, Chat, ChatMessage, Json, Person
from internal.simulators.lark.request_guard import RequestGuard
from internal.simulators.lark.rest import router
from internal.simulators.lark.server import Server, TlsIdentity, listen
from internal.simulators.lark.services import LarkServices
from internal.simulators.lark.traffic_log import TrafficEntry
from internal.simulators.lark.websocket import endpoint
from internal.simulators.lark.websocket.connection import ClientConfig
from internal.simulators.lark.websocket.delivery import EventPush

WAIT_TIMEOUT_SECONDS = 20.0


class LarkSim:
    """A local Lark on 127.0.0.1 for the duration of `async with`.

    docs/lark-sim.md lists the parts of Lark that it does not model. `speed` divides the delays
    between redeliveries. With `tls` it serves HTTPS under that host name. `lark` gives access to
    the parts.

    Raises:
        OSError: The port is in use (on entering).
    """

    def __init__(
        self,
        apps: Sequence[App] = (App("cli_larksim", "secret"),),
        *,
        port: int = 0,
        speed: float = 1.0,
        config: ClientConfig | None = None,
        tls: TlsIdentity | None = None,
    ) -> None:
        self.lark = LarkServices(apps, Faults(speed=speed), config or ClientConfig())
        self.key = secrets.token_urlsafe(16)
        """The key of the control API."""
        self._port, self._tls = port, tls

    async def __aenter__(self) -> Self:
        listening = listen(self._port)
        self._port = listening.getsockname()[1]
        lark = self.lark
        routes = (
            *router.routes(lark),
            *endpoint.routes(lark),
            *ControlApi(lark, self.key).routes(),
        )
        app = Starlette(routes=[*routes, *chat_page.routes()])
        names = {"127.0.0.1", "localhost", self._host}
        guard = RequestGuard(app, lark, (f"{name}:{self._port}" for name in names))
        server = Server(guard, listening, self._tls)
        self._serving = asyncio.create_task(self._serve(server))
        await server.open.wait()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._serving

    async def _serve(self, server: Server) -> None:
        """Serve until cancelled, then abort open requests."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self.lark.delivery.attach(tasks)
                await server.run_until_stopped()
        finally:
            self.lark.delivery.attach(None)
            await server.abort_connections()
            self.lark.close()
            await server.finish()

    @property
    def url(self) -> str:
        """The base URL, usable as an app's `domain`."""
        return f"{'http' if self._tls is None else 'https'}://{self._host}:{self._port}"

    @property
    def _host(self) -> str:
        return "127.0.0.1" if self._tls is None else self._tls.host

    @property
    def page(self) -> str:
        """The URL of the chat page, including the key."""
        return f"{self.url}/#key={self.key}"

    @property
    def app(self) -> App:
        """The first app."""
        return next(iter(self.lark.state.apps.values()))

    @property
    def people(self) -> list[Person]:
        """All people."""
        return list(self.lark.state.people.values())

    @property
    def groups(self) -> list[Chat]:
        """All chats except direct ones."""
        return [chat for chat in self.lark.state.chats.values() if chat.mode != "p2p"]

    @property
    def log(self) -> Sequence[TrafficEntry]:
        """The traffic log, oldest entry first."""
        return list(self.lark.log.entries)

    @property
    def faults(self) -> Faults:
        """The current fault switches."""
        return self.lark.faults

    @property
    def pushes(self) -> list[EventPush]:
        """All events and their delivery attempts, oldest first."""
        return list(self.lark.delivery.pushes)

    def person(self, name: str) -> Person:
        """Return the person with this name or open_id.

        Raises:
            ActionError: There is none.
        """
        for person in self.people:
            if name in {person.name, person.open_id}:
                return person
        raise user_actions.ActionError(f"no person is called {name}")

    def dm(self, person: Person | str, app_id: str = "") -> Chat:
        """Return the direct chat of a person with a bot, by default the first bot."""
        return self.lark.state.dm(_id(person), app_id)

    def messages(self, chat: Chat | str) -> list[ChatMessage]:
        """Return the messages of a chat, oldest first."""
        return self.lark.state.in_chat(_id(chat))

    def card(self, message_id: str) -> Json | None:
        """Return the card that a message currently shows."""
        return self.lark.state.shown_card(self.lark.state.messages[message_id])

    async def send_text(
        self, person: Person | str, chat: Chat | str, words: str, **more: Any
    ) -> str:
        """Send a text as a person and return its message_id.

        `mention_bot=True` mentions the first bot, `mentions` other open_ids; `reply_to`,
        `in_thread` and `age_seconds` are fields of `MessageDraft`.

        Raises:
            ActionError: The person is not in that chat.
        """
        mentions = [*more.pop("mentions", ())]
        if more.pop("mention_bot", False):
            mentions.append(self.app.open_id)
        draft = user_actions.text_draft(self.lark.state, words, mentions)
        return await self.send(person, chat, replace(draft, **more))

    async def send(
        self, person: Person | str, chat: Chat | str, draft: user_actions.MessageDraft
    ) -> str:
        """Send a message as a person and return its message_id.

        Raises:
            ActionError: The person is not in that chat.
        """
        message = user_actions.send(self.lark.state, _id(person), _id(chat), draft)
        await asyncio.sleep(0)  # let the delivery start
        return message.message_id

    async def send_as_bot(
        self, app_id: str, chat: Chat | str, words: str, mentions: Sequence[str] = ()
    ) -> str:
        """Send a text to a group as the bot of another app and return its message_id.

        Raises:
            ActionError: The bot is not in that group.
        """
        draft = user_actions.text_draft(self.lark.state, words, mentions)
        message = user_actions.send_as_bot(self.lark.state, app_id, _id(chat), draft)
        await asyncio.sleep(0)  # let the delivery start
        return message.message_id

    async def edit_text(
        self, person: Person | str, message_id: str, words: str, *, mention_bot: bool = False
    ) -> None:
        """Edit a message as the person who wrote it; `mention_bot` mentions the first bot.

        Raises:
            ActionError: The person cannot edit it.
        """
        mentions = [self.app.open_id] if mention_bot else []
        draft = user_actions.text_draft(self.lark.state, words, mentions)
        user_actions.edit(self.lark.state, _id(person), message_id, draft)
        await asyncio.sleep(0)  # let the delivery start

    async def click(
        self, person: Person | str, message_id: str, label: str, **entered: Any
    ) -> Json:
        """Click the card element with this name, element_id or text; return Lark's response.

        `entered` are fields of `CardClick`, such as `form_value`.

        Raises:
            ActionError: The person cannot click such an element.
        """
        path = clicks.find_clickable(self.card(message_id) or {}, label)
        return await self.press(person, message_id, clicks.CardClick(path=path, **entered))

    async def press(self, person: Person | str, message_id: str, press: clicks.CardClick) -> Json:
        """Click an element of a card; return the response shown to the person.

        Raises:
            ActionError: The person cannot click such an element.
        """
        call_back = self.lark.delivery.call_back
        return await clicks.click(
            self.lark.state, call_back, _id(person), message_id=message_id, press=press
        )

    def redeliver(self, message_id: str) -> None:
        """Send the events of a message again, whatever their outcome was."""
        self.lark.redeliver(message_id)

    def push(self, event_type: str, event: Json, **source: str) -> None:
        """Send any event, valid or not, to the first app; `source` replaces header fields."""
        self.lark.delivery.emit(self.app, event_type, event, source)

    async def push_bytes(self, data: bytes) -> None:
        """Send bytes on every connection without framing them."""
        for connection in self.lark.delivery.connections:
            await connection.send(data)

    def set_faults(self, **switches: Any) -> None:
        """Change some fault switches and keep the others; see `Faults`.

        Raises:
            msgspec.ValidationError: A switch or its value is unknown.
        """
        self.lark.switch(switches)

    async def until(
        self,
        holds: Callable[[Sequence[TrafficEntry]], object],
        timeout_seconds: float = WAIT_TIMEOUT_SECONDS,
    ) -> None:
        """Wait until a condition holds; it is evaluated with the log after every change.

        Raises:
            TimeoutError: It did not hold within `timeout_seconds`.
        """
        async with asyncio.timeout(timeout_seconds):
            while not holds(self.log):
                await self.lark.changes.wait()


def _id(one: Person | Chat | str) -> str:
    match one:
        case Person():
            return one.open_id
        case Chat():
            return one.chat_id
        case _:
            return one

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
from internal.simulators.lark.server import Server, listen
from internal.simulators.lark.services import LarkServices
from internal.simulators.lark.traffic_log import TrafficEntry
from internal.simulators.lark.websocket import endpoint
from internal.simulators.lark.websocket.connection import ClientConfig
from internal.simulators.lark.websocket.delivery import EventPush

WAIT_TIMEOUT_SECONDS = 20.0


class LarkSim:
    """A local Lark on 127.0.0.1, from `async with` to its end.

    It is a simulator: docs/lark-sim.md lists what it does not model. `speed` is how many times
    faster than Lark an event that was not acknowledged comes again. `lark` holds the parts.

    Raises:
        OSError: the port is taken (on entering).
    """

    def __init__(
        self,
        apps: Sequence[App] = (App("cli_larksim", "secret"),),
        *,
        port: int = 0,
        speed: float = 1.0,
        config: ClientConfig | None = None,
    ) -> None:
        self.lark = LarkServices(apps, Faults(speed=speed), config or ClientConfig())
        self.key = secrets.token_urlsafe(16)
        """What the control API wants to see."""
        self._port = port

    async def __aenter__(self) -> Self:
        listening = listen(self._port)
        self._port = listening.getsockname()[1]
        lark = self.lark
        doors = (
            *router.routes(lark),
            *endpoint.routes(lark),
            *ControlApi(lark, self.key).routes(),
        )
        app = Starlette(routes=[*doors, *chat_page.routes()])
        server = Server(RequestGuard(app, lark, self._port), listening)
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
        """Serve until cancelled; whatever is on its way then ends."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self.lark.delivery.run_in(tasks)
                await server.run_until_stopped()
        finally:
            self.lark.delivery.run_in(None)
            await server.abort_connections()
            self.lark.close()
            await server.finish()

    @property
    def url(self) -> str:
        """The address, as `domain` of an app takes it."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def page(self) -> str:
        """The address of the chat page, with its key."""
        return f"{self.url}/#key={self.key}"

    @property
    def app(self) -> App:
        """The first app."""
        return next(iter(self.lark.state.apps.values()))

    @property
    def people(self) -> list[Person]:
        """Everybody."""
        return list(self.lark.state.people.values())

    @property
    def groups(self) -> list[Chat]:
        """Every chat that is no direct one."""
        return [chat for chat in self.lark.state.chats.values() if chat.mode != "p2p"]

    @property
    def log(self) -> Sequence[TrafficEntry]:
        """The wire log, oldest first."""
        return list(self.lark.log.entries)

    @property
    def faults(self) -> Faults:
        """The switches as they are."""
        return self.lark.faults

    @property
    def pushes(self) -> list[EventPush]:
        """Every event, oldest first, and how its deliveries went."""
        return list(self.lark.delivery.pushes)

    def person(self, name: str) -> Person:
        """Return the person of that name or open_id.

        Raises:
            NotPossible: there is none.
        """
        for person in self.people:
            if name in {person.name, person.open_id}:
                return person
        raise user_actions.ActionError(f"{name} is nobody")

    def dm(self, person: Person | str, app_id: str = "") -> Chat:
        """Return the direct chat of a person with a bot, by default the first."""
        return self.lark.state.dm(_id(person), app_id)

    def messages(self, chat: Chat | str) -> list[ChatMessage]:
        """Return the messages of a chat, oldest first."""
        return self.lark.state.in_chat(_id(chat))

    def card(self, message_id: str) -> Json | None:
        """Return the card that a message shows now."""
        return self.lark.state.shown_card(self.lark.state.messages[message_id])

    async def send_text(
        self, person: Person | str, chat: Chat | str, words: str, **more: Any
    ) -> str:
        """Send a text as a person and return its message_id.

        `mention_bot=True` mentions the first bot, `mentions` other open_ids; `reply_to`,
        `in_thread` and `age_seconds` are those of `Draft`.

        Raises:
            NotPossible: the person is not in that chat.
        """
        mentions = [*more.pop("mentions", ())]
        if more.pop("mention_bot", False):
            mentions.append(self.app.open_id)
        draft = user_actions.text_draft(self.lark.state, words, mentions)
        return await self.send(person, chat, replace(draft, **more))

    async def send(
        self, person: Person | str, chat: Chat | str, draft: user_actions.MessageDraft
    ) -> str:
        """Send anything as a person and return its message_id.

        Raises:
            NotPossible: the person is not in that chat.
        """
        message = user_actions.send(self.lark.state, _id(person), _id(chat), draft)
        await asyncio.sleep(0)  # the delivery starts
        return message.message_id

    async def click(
        self, person: Person | str, message_id: str, label: str, **entered: Any
    ) -> Json:
        """Click what has that name, element_id or text on a card; return what the person sees.

        `entered` is what `Press` takes, such as `form_value`.

        Raises:
            NotPossible: there is no such thing to click for this person.
        """
        path = clicks.find_clickable(self.card(message_id) or {}, label)
        return await self.press(person, message_id, clicks.CardClick(path=path, **entered))

    async def press(self, person: Person | str, message_id: str, press: clicks.CardClick) -> Json:
        """Click on a part of a card; return what the person sees.

        Raises:
            NotPossible: there is no such thing to click for this person.
        """
        call_back = self.lark.delivery.call_back
        return await clicks.click(self.lark.state, call_back, _id(person), message_id, press)

    def redeliver(self, message_id: str) -> None:
        """Send the events of a message again, however they went."""
        self.lark.redeliver(message_id)

    def push(self, event_type: str, event: Json) -> None:
        """Send any event to the first app, right or wrong."""
        self.lark.delivery.emit(self.app, event_type, event)

    async def push_bytes(self, data: bytes) -> None:
        """Send bytes that are no frame, or a hostile one, on every connection."""
        for connection in self.lark.delivery.connections:
            await connection.send(data)

    def set_faults(self, **switches: Any) -> None:
        """Turn some switches, and leave the others; `Faults` names them.

        Raises:
            msgspec.ValidationError: there is no such switch, or it has no such position.
        """
        self.lark.switch(switches)

    async def until(
        self,
        holds: Callable[[Sequence[TrafficEntry]], object],
        patience: float = WAIT_TIMEOUT_SECONDS,
    ) -> None:
        """Wait until something holds; it is asked again, with the wire log, after every change.

        Raises:
            TimeoutError: it did not hold for so many seconds.
        """
        async with asyncio.timeout(patience):
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

"""The Lark door: one app's connection, and the tasks that live as long as it is open."""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, NamedTuple

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.gateway import Gateway
from internal.agent.app.task_options import TaskDefaults
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.ids import RunId
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.channels.chat.inbox_worker import Taker
from internal.channels.chat.outbox_sender import Sender
from internal.channels.chat.policy import ChatRules
from internal.channels.chat.run_display import Showings
from internal.channels.chat.task_router import Outcome, Setting
from internal.channels.lark.api import LarkApi, LarkClient
from internal.channels.lark.card_actions import Behind, CardActionHandler
from internal.channels.lark.connection import (
    AppCredentials,
    ConnectionState,
    ConnectionTimeouts,
    LarkConnection,
)
from internal.channels.lark.directory import Around, Identity, People, Threads
from internal.channels.lark.progress_card import Screen
from internal.channels.lark.receiver import Receiver
from internal.channels.lark.replies import Replies

log = logging.getLogger(__name__)

STEERING_EMOJI = "OnIt"
"""The reaction that says: the run at work has got this."""
_RELEASE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class House:
    """What is behind the door. `owner` names this process."""

    gateway: Gateway
    broadcaster: EventBroadcaster
    database: Database
    stores: Stores
    defaults: TaskDefaults
    clock: Clock
    owner: str


class LarkHealth(NamedTuple):
    """How the connection is, and how many replies were given up."""

    link: ConnectionState
    dead: int


class LarkChannel:
    """One app. Nothing is imported from Lark's SDK and nothing is connected before `run`."""

    def __init__(
        self,
        login: AppCredentials,
        rules: ChatRules,
        house: House,
        pace: ConnectionTimeouts | None = None,
    ) -> None:
        database, stores, clock = house.database, house.stores, house.clock
        self._login, self._house, self._rules = login, house, rules
        self._api = LarkClient(login, clock)
        self._calls = LarkApi(self._api)
        self._identity = Identity(self._calls)
        people = People(house.gateway, self._calls, rules, login.app_id)
        self._around = Around(self._identity, people, Threads(self._calls, login.app_id))
        replies = Replies(self._calls, database, stores, login.app_id, rules.language)
        self._sender = Sender(login.app_id, replies, database, stores.outbox, clock)
        screen = Screen(
            door=f"lark:{login.app_id}",
            owner=house.owner,
            gateway=house.gateway,
            broadcaster=house.broadcaster,
            database=database,
            stores=stores,
            clock=clock,
            calls=self._calls,
            rules=rules,
        )
        self._showings = Showings(screen, login.app_id, self._sender.wake)
        self._connection = LarkConnection(login, self._take, clock, pace)
        self._receiver: Receiver | None = None
        self._clicks: CardActionHandler | None = None
        self._stopping = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None

    @property
    def health(self) -> LarkHealth:
        """How it is; costs nothing."""
        return LarkHealth(self._connection.state, self._sender.dead or 0)

    def stop(self) -> None:
        """Ask `run` to end: no event is taken any more, and what is shown is left to the next."""
        self._stopping.set()

    async def run(self) -> None:
        """Serve the app until `stop`. What was accepted, promised or shown before goes on."""
        taker = self._taker()
        accept = self._house.gateway.accept
        self._receiver = Receiver(self._login.app_id, accept, taker.wake, self._house.clock)
        self._clicks = self._make_clicks()
        self._connection.start()
        try:
            async with asyncio.TaskGroup() as self._tasks:
                loops: list[Coroutine[Any, Any, None]] = [
                    self._identity.find(),
                    taker.run(),
                    self._sender.run(),
                    self._showings.run(),
                ]
                children = [self._tasks.create_task(each) for each in loops]
                await self._stopping.wait()
                await self._connection.stop()
                for child in children:
                    child.cancel()
        finally:
            self._tasks = None
            await self._leave()

    async def _leave(self) -> None:
        await self._connection.stop()
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                await self._showings.release()
        except (TimeoutError, LarkspurError) as error:
            log.warning("showings keep their lease", extra={"why": str(error)})
        await self._api.close()

    def _take(self, payload: bytes) -> dict[str, Any] | None:
        assert self._receiver is not None  # noqa: S101  # the connection starts after they are made
        assert self._clicks is not None  # noqa: S101  # likewise
        reaction = self._clicks.take(payload)
        if reaction is None:
            self._receiver.take(payload)
        return reaction

    def _make_clicks(self) -> CardActionHandler:
        house, app_id = self._house, self._login.app_id
        behind = Behind(
            house.gateway, house.database, house.stores, self._around.people, self._answered
        )
        return CardActionHandler(app_id, self._rules.language, behind)

    def _answered(self, run_id: RunId) -> None:
        self._sender.wake()
        self._showings.follow(run_id)

    def _taker(self) -> Taker:
        house = self._house
        outcome = Outcome(
            follow=self._showings.follow,
            acknowledge=self._acknowledge,
            promised=self._sender.wake,
        )
        setting = Setting(self._login.app_id, self._rules, house.defaults)
        return Taker(self._around, house.gateway, house.database, house.stores, setting, outcome)

    def _acknowledge(self, message_id: str) -> None:
        if self._tasks is not None:
            self._tasks.create_task(self._react(message_id))

    async def _react(self, message_id: str) -> None:
        try:
            await self._calls.react(message_id, STEERING_EMOJI)
        except LarkspurError as error:
            log.info("steering was not acknowledged", extra={"why": str(error)})

"""One run as its chat sees it: a reaction while it works, one message that shows what it does."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.events.subscription import Cursor
from internal.agent.app.gateway import Gateway
from internal.agent.domain.chats import RunDisplay
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.events.record import EventRecord
from internal.agent.domain.tasks import Origin, Run
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.channels.chat.policy import ChatRules
from internal.channels.chat.run_state import COLOURS, Work
from internal.channels.lark.api import BEST_EFFORT, DEFAULT_POLICY, LarkApi, LarkRejected, as_json
from internal.channels.lark.message_format import markdown_card, send_uuid
from internal.channels.lark.replies import PROGRESS_MARK
from internal.i18n.chat import ChatPhrases

log = logging.getLogger(__name__)

LEASE_SECONDS = 15.0
RENEW_SECONDS = 5.0
PATIENCE_SECONDS = 2.0
"""A run that is over sooner is not shown at work: its answer is enough."""
PAUSE_SECONDS = 1.0
"""Between two updates of a message; Lark takes five a second."""
_MOST_EDITS = 18


class _State(msgspec.Struct):
    """What was shown: kept in the showing row. `lost`: the message cannot be updated any more.

    `reacting` and `sending` are stored before their calls: whoever finds them without an id makes
    the call again, which gives the id of what is there. `resting`: the run waits for a person.
    """

    reacting: bool = False
    reaction: str = ""
    sending: bool = False
    message: str = ""
    edits: int = 0
    lost: bool = False
    resting: bool = False


def is_resting(showing: RunDisplay) -> bool:
    """Say whether a showing was left because its run waits for a person."""
    return msgspec.json.decode(showing.state or b"{}", type=_State).resting


class Screen(NamedTuple):
    """What all showings of an app share. `owner` names this process."""

    door: str
    owner: str
    gateway: Gateway
    broadcaster: EventBroadcaster
    database: Database
    stores: Stores
    clock: Clock
    calls: LarkApi
    rules: ChatRules


class Progress:
    """Shows one run whose showing is ours."""

    def __init__(
        self, screen: Screen, showing: RunDisplay, run: Run, origin: Origin, words: ChatPhrases
    ) -> None:
        self._screen, self._run, self._origin, self._words = screen, run, origin, words
        self._showing = showing
        self._state = msgspec.json.decode(showing.state or b"{}", type=_State)
        self._state.resting = False
        self._work = Work()
        self._changed = asyncio.Event()
        self._begun = 0.0
        self._painted = ""

    async def show(self, promised: Callable[[], None]) -> Literal["over", "waiting", "left"]:
        """Show the run until it ends or waits for a person, and say `promised` at once.

        Nothing that is shown may delay the answer or the question. Returns "left" when the process
        leaves before.
        """
        log_of_run = partial(self._screen.stores.events.list_by_run, self._run.id)
        position = 0
        for row in await self._screen.database.read(log_of_run):
            self._work.take(row.event, row.json)
            position = row.position
        self._note_start()
        async with asyncio.TaskGroup() as tasks:
            painting = tasks.create_task(self._paint())
            if not self._work.still:
                await self._follow(position)
            if self._work.still:
                promised()
            else:
                painting.cancel()
        if self._work.over:
            return "over"
        return "waiting" if self._work.still else "left"

    async def rest(self) -> None:
        """Show that the run waits for a person, and leave the showing until it goes on."""
        await self._update()
        await self._unreact()
        self._state.reacting, self._state.reaction, self._state.resting = False, "", True
        await self._keep(lease_seconds=0.0)

    async def finish(self) -> None:
        """Show that the run is over, and take the reaction away."""
        await self._update()
        await self._unreact()
        stores, owner = self._screen.stores, self._screen.owner
        close = partial(stores.run_displays.close, self._kept(), self._screen.door, owner)
        await self._screen.database.write(close)

    async def release(self) -> None:
        """Leave the showing to whoever comes next, at once."""
        await self._keep(lease_seconds=0.0)

    async def _follow(self, position: int) -> None:
        """Take the run's events until its end, or until the process shuts its streams."""
        start = Cursor(self._screen.broadcaster.epoch, position)
        watched = frozenset({self._run.session_id})
        async with aclosing(self._screen.gateway.watch(watched, start)) as batches:
            async for batch in batches:
                for shown in batch:
                    if isinstance(shown, EventRecord) and shown.run_id == self._run.id:
                        self._take(shown)
                if self._work.still:
                    return

    def _take(self, frame: EventRecord) -> None:
        if frame.position and self._work.take(frame.event, frame.json):
            self._note_start()
            self._changed.set()

    def _note_start(self) -> None:
        if not self._begun and self._work.phase != "queued":
            self._begun = self._screen.clock.monotonic()

    async def _paint(self) -> None:
        """Bring the message up to date, not too often, until the run is over or waits."""
        await self._react()
        while not self._work.still:
            try:
                async with asyncio.timeout(self._tick()):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            if self._due():
                await self._update()
                await asyncio.sleep(PAUSE_SECONDS)
            if not await self._keep():
                return

    def _tick(self) -> float:
        young = self._begun and not self._state.message
        return PATIENCE_SECONDS if young else RENEW_SECONDS

    def _due(self) -> bool:
        hidden = self._screen.rules.progress == "off" or self._state.lost or self._work.still
        if hidden or not self._begun:
            return False
        age = self._screen.clock.monotonic() - self._begun
        return bool(self._state.message) or self._work.worth_showing or age >= PATIENCE_SECONDS

    async def _update(self) -> None:
        """Send or replace the message; what fails is left out, for answers come first."""
        if self._state.lost or (self._work.still and not self._state.sending):
            return  # an answer or a question is enough
        content = self._content()
        if content == self._painted:
            return
        try:
            if self._state.message or not await self._sent(content):
                await self._replace(content)
            self._painted = content
        except LarkRejected as refused:
            self._state.lost = True
            self._tell("progress is not shown any more", refused)
        except LarkspurError as error:
            self._tell("progress was not shown", error)

    async def _sent(self, content: str) -> bool:
        """Send the message and keep its id; False when an older one may be there under its uuid."""
        before = self._state.sending
        if not before:
            self._state.sending = True
            await self._keep()
        kind = "interactive" if self._screen.rules.progress == "card" else "text"
        name = send_uuid(self._run.id, "progress", 0)
        target = self._origin.message_id
        reply = self._screen.calls.reply
        self._state.message = await reply(target, kind, content, name, BEST_EFFORT)
        await self._keep()
        return not before

    async def _replace(self, content: str) -> None:
        # the last state stays for good, so it is worth more than one try
        patience = DEFAULT_POLICY if self._work.still else BEST_EFFORT
        if self._screen.rules.progress == "card":
            await self._screen.calls.patch_card(self._state.message, content, patience)
        elif self._state.edits < _MOST_EDITS or self._work.still:  # Lark takes 20 edits of a text
            self._state.edits += 1
            await self._screen.calls.edit_text(self._state.message, self._text(), patience)

    def _content(self) -> str:
        if self._screen.rules.progress == "text":
            return as_json({"text": self._text()})
        body = "\n".join(self._work.lines(self._words)) or self._words("progress_thinking")
        title = self._work.title(self._words)
        return as_json(markdown_card(body, title, COLOURS[self._work.phase]))

    def _text(self) -> str:
        lines = [f"{PROGRESS_MARK} {self._work.title(self._words)}", *self._work.lines(self._words)]
        return "\n".join(lines)

    async def _react(self) -> None:
        emoji = self._screen.rules.react_emoji
        if emoji == "off" or self._state.reaction or self._work.still:
            return
        self._state.reacting = True
        await self._keep()
        try:
            await self._put_reaction()
        except LarkspurError as error:
            self._tell("the reaction was not set", error)
        else:
            await self._keep()

    async def _put_reaction(self) -> None:
        emoji = self._screen.rules.react_emoji
        self._state.reaction = await self._screen.calls.react(self._origin.message_id, emoji)

    async def _unreact(self) -> None:
        if not self._state.reacting:
            return
        try:
            if not self._state.reaction:
                await self._put_reaction()
            await self._screen.calls.unreact(self._origin.message_id, self._state.reaction)
        except LarkspurError as error:
            self._tell("the reaction was not removed", error)

    async def _keep(self, lease_seconds: float = LEASE_SECONDS) -> bool:
        """Store what was shown and stay its writer; False when somebody else is."""
        screen = self._screen
        until = rfc3339(screen.clock.now() + timedelta(seconds=lease_seconds))
        keep = partial(
            screen.stores.run_displays.save,
            self._kept(),
            screen.door,
            screen.owner,
            lease_until=until,
        )
        return await screen.database.write(keep)

    def _kept(self) -> RunDisplay:
        return self._showing._replace(state=as_json(self._state))

    def _tell(self, what: str, error: Exception) -> None:
        log.info(what, extra={"run_id": self._run.id, "why": str(error)})

"""A conversation in a simulated Lark: a message, two approvals, a question and the reply.

The person acts on the content shown by Lark. The gateway may be killed, suspended or cut off at any
time.
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from internal.simulators.lark.model import ChatMessage
from internal.simulators.lark.simulator import LarkSim
from internal.simulators.lark.user_actions import ActionError
from internal.simulators.lark.websocket.delivery import EventPush
from tests.chaos import invariants
from tests.chaos.model_script import Steps, final, note, plan, scripted_model
from tests.chaos.restarting_gateway import RestartingGateway, restarting_gateway
from tests.chaos.scenario import list_events, read_replay
from tests.support.http_client import SseFrame
from tests.support.lark_gateway import APP, shown_text
from tests.support.openai_server import ScriptedOpenAI
from tests.support.postgres_server import shared_server
from tests.support.scripted_model import Call, Reply

TASK, ANSWER, ALLOW, ALLOWED = "Please do task A.", "blue", "Allow once", "Allowed once"
QUESTION = "Which colour?"
STEPS: Steps = {
    "A": (
        Reply(calls=[plan("write")]),
        Reply(text="Now I write.", calls=[note("A1")]),
        Reply(calls=[Call("request_user", {"question": QUESTION})]),
        Reply(text="One more.", pieces=4, packets="each", calls=[note("A2")]),
        final("A"),
    )
}
MAX_SECONDS = 90.0
"""Maximum duration of a conversation, with all its faults."""
FINISH_SECONDS = 15.0
"""Maximum time for which the progress of a run may be shown as current after its reply."""

DATABASE = "LARKSPUR_DATABASE__URL"
"""The variable that selects another database than a file in the home folder."""

Environ = Mapping[str, str]
Script = Callable[[dict[str, Any]], Reply]
Disturb = Callable[["Conversation"], Coroutine[Any, Any, None]]
MODEL: Script = scripted_model(STEPS)


@dataclass
class Conversation:
    """The person, the simulated Lark, the gateway and a reader of its events."""

    sim: LarkSim
    gateway: RestartingGateway
    model: ScriptedOpenAI
    frames: list[SseFrame] = field(default_factory=list)

    async def hold(self) -> None:
        """Hold the conversation; return when the reply is shown and nothing is left to do."""
        async with asyncio.timeout(MAX_SECONDS), asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(self._read())
            delivering = tasks.create_task(deliver_again(self.sim, lambda: False))
            await self.until(lambda: bool(self.connections))
            await self._say(TASK)
            await self._allow(1)
            await self.until(lambda: self.shows(QUESTION))
            await self._say(ANSWER)
            await self._allow(2)
            await self.until_idle()
            await reading
            delivering.cancel()

    async def hold_while(self, disturb: Disturb) -> None:
        """Hold the conversation while something disturbs it."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(disturb(self))
            tasks.create_task(self.hold())

    async def until_idle(self) -> None:
        """Wait until the reply is shown, no run is shown as working and every event was taken."""
        await self.until(lambda: bool(self.replies()))
        await self.sim.until(lambda _: not self.shows('"Working"'), FINISH_SECONDS)
        await self.until(lambda: all(map(was_taken, self.messages)))
        while not invariants.have_ended((await self.gateway.get("/api/tasks"))["tasks"]):
            await self.sim.lark.changed_within(0.1)

    def replies(self) -> list[str]:
        """Return the texts of the bot without questions and progress."""
        texts = [shown_text(self.sim, message) for message in self.from_bot()]
        return [text for text in texts if text is not None and QUESTION not in text]

    def from_bot(self) -> list[ChatMessage]:
        """Return the bot's messages, oldest first."""
        found = self.sim.messages(self.sim.dm(self.sim.people[0]))
        return [one for one in found if one.sender_type == "app" and not one.deleted]

    def cards_with(self, text: str) -> int:
        """Return how many messages of the bot show a text now."""
        return sum(text in one.content or text in self._card(one) for one in self.from_bot())

    @property
    def connections(self) -> Sequence[object]:
        """The long connections that the gateway has open."""
        return self.sim.lark.delivery.connections

    @property
    def messages(self) -> list[EventPush]:
        """The events of the person's messages."""
        return [push for push in self.sim.pushes if push.message_id]

    async def _say(self, text: str) -> None:
        await self.sim.send_text(self.sim.people[0], self.sim.dm(self.sim.people[0]), text)

    async def _allow(self, count: int) -> None:
        """Click until this many approvals are shown as given: a click is lost with its process."""
        while self.cards_with(ALLOWED) < count:
            for message in self.from_bot():
                if self.connections and ALLOW in self._card(message):
                    with suppress(ActionError):  # the card was updated meanwhile
                        await self.sim.click(self.sim.people[0], message.message_id, ALLOW)
            await self.sim.lark.changed_within(0.1)

    def _card(self, message: ChatMessage) -> str:
        return json.dumps(self.sim.card(message.message_id) or {}, ensure_ascii=False)

    def shows(self, text: str) -> bool:
        """Return whether a message of the bot shows a text now."""
        return self.cards_with(text) > 0

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds; it is evaluated after every change in Lark."""
        await self.sim.until(lambda _: holds(), MAX_SECONDS)

    async def _read(self) -> None:
        """Follow the events as a reader that reconnects with its cursor."""
        async with aclosing(self.gateway.stream("sessions=*")) as frames:
            async for frame in frames:
                self.frames.append(frame)
                if frame.event in invariants.TERMINAL:
                    return


async def undisturbed(_: Conversation) -> None:
    """Disturb nothing."""


async def deliver_again(sim: LarkSim, is_over: Callable[[], bool]) -> None:
    """Deliver untaken events to each new connection: Lark itself waits for long."""
    known: set[object] = set()
    while not is_over():
        connections = sim.lark.delivery.connections
        if not known.issuperset(connections):
            for push in [each for each in sim.pushes if each.message_id]:
                if push.attempts and not was_taken(push):
                    sim.redeliver(push.message_id)
        known |= set(connections)
        await sim.lark.changed_within(1)


def was_taken(push: EventPush) -> bool:
    """Return whether an event was acknowledged once."""
    return "ok" in push.attempts


@asynccontextmanager
async def open_conversation(
    folder: Path,
    environ: Environ,
    plans: Sequence[str],
    script: Script = MODEL,
    prefix: Sequence[str] = (),
) -> AsyncGenerator[Conversation]:
    """Start the model, Lark and the gateway, whose processes crash by the plans."""
    async with (
        LarkSim([APP], speed=100.0) as sim,
        ScriptedOpenAI(script, record=False) as model,
        restarting_gateway(folder, model, with_lark(sim, environ), plans, prefix) as gateway,
    ):
        sim.set_faults(limits=False)
        yield Conversation(sim, gateway, model)


def with_lark(sim: LarkSim, environ: Environ) -> dict[str, str]:
    """Return the environment of a gateway in which everybody in Lark may approve."""
    return {
        **environ,
        "LARKSPUR_CHANNELS__LARK__ENABLED": "true",
        "LARKSPUR_CHANNELS__LARK__APP_ID": APP.app_id,
        "LARKSPUR_CHANNELS__LARK__APP_SECRET": APP.secret,
        "LARKSPUR_CHANNELS__LARK__DOMAIN": sim.url,
        "LARKSPUR_CHANNELS__LARK__ACCESS__OPERATE": '["*"]',
    }


async def check(conversation: Conversation) -> None:
    """Check the contents of Lark and the responses of the HTTP API against the invariants."""
    gateway = conversation.gateway
    assert conversation.replies() == [final("A").text]
    assert conversation.cards_with(ALLOWED) == 2
    assert conversation.cards_with(QUESTION) == 1
    (task,) = (await gateway.get("/api/tasks"))["tasks"]
    assert (task["status"], task["stop_reason"]) == ("completed", "final_answer")
    events = await list_events(gateway, task["session_id"])
    invariants.check_run(events)
    (workspace,) = (gateway.home / "workspaces").iterdir()
    invariants.check_ledger(events, workspace / "ledger.txt")
    replay = await read_replay(gateway, "sessions=*")
    invariants.check_frames(conversation.frames, replay)
    assert [frame.json() for frame in replay if frame.id] == events
    questions = (await gateway.get("/api/questions"))["questions"]
    assert [each["status"] for each in questions] == ["answered"] * 3


async def run_conversation(
    folder: Path,
    environ: Environ,
    plans: Sequence[str],
    disturb: Disturb = undisturbed,
    script: Script = MODEL,
    prefix: Sequence[str] = (),
) -> RestartingGateway:
    """Hold a conversation with processes that crash by the plans, then check all invariants.

    `disturb` runs beside it, to its end.
    """
    async with open_conversation(folder, environ, plans, script, prefix) as conversation:
        await conversation.hold_while(disturb)
        await check(conversation)
    check_database(conversation.gateway.home, environ)
    return conversation.gateway


def check_database(home: Path, environ: Environ) -> None:
    """Check the tables of the database of a gateway that has ended."""
    if DATABASE in environ:
        invariants.check_tables(partial(select, home, environ))
    else:
        invariants.check_file(home / "larkspur.db")


def select(home: Path, environ: Environ, query: str) -> list[tuple[Any, ...]]:
    """Return rows of the database of a gateway."""
    if (url := environ.get(DATABASE)) is not None:
        return shared_server().sql(query, url.rpartition("/")[2])
    with closing(sqlite3.connect(home / "larkspur.db")) as connection:
        return connection.execute(query).fetchall()

"""Decoding, reads and writes of the Lark channel for a message that is answered at once."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TypeVar

import msgspec
from msgspec import structs

from internal.agent.store.database import Database, Read, Row, Step, Write
from internal.channels.chat.displays.displayed_run import REACTION_DELAY_SECONDS
from internal.channels.chat.displays.run_display import SWEEP_SECONDS
from internal.channels.chat.outbox_sender import POLL_SECONDS
from internal.settings.chat import ChatChannelSettings
from internal.simulators.lark.simulator import LarkSim
from larkspur.services import make_gateway
from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Reply, Rules
from tests.support.database_wrapper import DatabaseWrapper
from tests.support.lark_gateway import (
    APP,
    CONFIG,
    LarkGateway,
    lark_transport,
    open_lark,
    open_lark_gateway,
)

T = TypeVar("T")
Work = Generator[Step, list[Row], T]

MESSAGES = 3
ACCEPTED = ("accept_message", "begin_processing")
FACTS = ("message_state", "role_assignment", "open_questions_of_chat", "chat_settings")
REPLY_BEGUN = (
    "due_messages", "begin_attempt", "run", "task", "events_of_run", "event_runs",
)  # fmt: skip
SENT = ("settle_message", "pending_beside")
MAX_STATEMENTS = 28
"""Of the writes for one message, with those that store its task."""


class CountingDatabase(DatabaseWrapper):
    """Notes the statements of each unit of work."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.reads: list[tuple[str, ...]] = []
        self.writes: list[tuple[str, ...]] = []

    async def read(self, work: Callable[[], Read[T]], /, *, is_short: bool = False) -> T:
        return await super().read(partial(note, work, self.reads), is_short=is_short)

    async def write(self, work: Callable[[], Write[T]], /) -> T:
        return await super().write(partial(note, work, self.writes))

    def submit(self, work: Callable[[], Write[T]], /) -> Future[T]:
        return super().submit(partial(note, work, self.writes))


def note(work: Callable[[], Work[T]], noted: list[tuple[str, ...]]) -> Work[T]:
    """Execute a unit of work, and note its statements when it has ended."""
    names, generator = list[str](), work()
    try:
        statement = next(generator)
        while True:
            names.append(statement.query)
            statement = generator.send((yield statement))
    except StopIteration as end:
        noted.append(tuple(names))
        result: T = end.value
        return result


async def test_a_message_that_is_answered_at_once_costs_four_writes_and_one_read(
    tmp_path: Path,
) -> None:
    async with (
        LarkSim([APP], config=CONFIG) as sim,
        open_agent(tmp_path, Rules([Reply("hi")])) as here,
    ):
        database, settings = CountingDatabase(here.services.database), ChatChannelSettings()
        watched = structs.replace(here.services, database=database)
        gateway = make_gateway(watched, here.services.dispatcher)
        counted = replace(here, services=structs.replace(here.services, gateway=gateway))
        transport = lark_transport(counted, sim, settings)
        async with open_lark(counted, sim, settings, transport=transport) as channel:
            lark = LarkGateway(sim, here, channel, transport)
            slowest = await answered(lark, 1)
            await lark.settled()
            database.reads.clear()
            database.writes.clear()
            begun = time.monotonic()
            for number in range(MESSAGES):
                slowest = max(slowest, await answered(lark, number + 2))
            await lark.settled()
            taken = time.monotonic() - begun
    writes = Counter(database.writes)
    assert (writes[ACCEPTED], writes[SENT]) == (MESSAGES,) * 2
    assert writes[REPLY_BEGUN] == MESSAGES, writes
    # what is looked for at intervals, however long this took
    looked = [("due_messages",), ("abandoned_run_displays",), ("accepted_messages",)]
    reads = [each for each in database.reads if each not in looked]
    written = [each for each in database.writes if each not in looked]
    assert database.writes.count(("due_messages",)) <= 2 + taken / POLL_SECONDS
    assert database.reads.count(("abandoned_run_displays",)) <= 1 + taken / SWEEP_SECONDS
    if slowest < REACTION_DELAY_SECONDS:  # else a run is displayed
        assert Counter(reads) == {FACTS: MESSAGES}
        assert len(written) == 4 * MESSAGES
        assert sum(map(len, written)) <= MAX_STATEMENTS * MESSAGES


INPUT_MODULES = ("events", "card_actions", "channel", "content/", "history/")
"""The modules of the Lark channel that read what Lark sends."""

JSON_DECODERS = {msgspec.json.decode.__qualname__, msgspec.json.Decoder.decode.__qualname__}


class DecodeCounter:
    """Notes the calls that decode JSON which Lark sent as an event."""

    def __init__(self) -> None:
        self.modules: list[str] = []

    def profile(self, frame: FrameType, event: str, function: object) -> None:
        """Note a call; installed with `sys.setprofile`."""
        if event == "c_call" and getattr(function, "__qualname__", "") in JSON_DECODERS:
            _, _, module = frame.f_code.co_filename.partition("/internal/channels/lark/")
            if module.startswith(INPUT_MODULES):
                self.modules.append(module)

    @contextmanager
    def counting(self) -> Generator[None]:
        """Count in this thread, and in threads that start meanwhile."""
        before, before_in_threads = sys.getprofile(), threading.getprofile()
        threading.setprofile(self.profile)
        sys.setprofile(self.profile)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(before_in_threads)


async def test_a_message_is_decoded_once(tmp_path: Path) -> None:
    counter = DecodeCounter()
    with counter.counting():
        async with open_lark_gateway(tmp_path, Rules([Reply("hi")])) as lark:
            counter.modules.clear()
            await answered(lark, 1)
            await lark.settled()
            # its envelope, the event in it, and the content of the message
            expected = ["content/message_content.py", "events.py", "events.py"]
            assert sorted(counter.modules) == expected


async def answered(lark: LarkGateway, count: int) -> float:
    """Send a message; return the seconds to its reply, which is the n-th."""
    begun = time.monotonic()
    await lark.say(f"message {count}")
    await lark.until_replies(count)
    return time.monotonic() - begun

"""A message that cannot be processed is set aside, on every chat service; its chat goes on."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from internal.agent.app.gateway import Gateway
from internal.agent.domain.chats import AcceptedMessage, DeadLetter, InboundMessage
from internal.agent.domain.errors import FilesUnavailable
from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.chat.chat_queues import MAX_ATTEMPTS
from internal.channels.chat.transport import ChatTransport, StoredEvent, TransportUnavailable
from internal.channels.registry import CHANNELS
from internal.settings.chat import ChatAccess, ChatChannelSettings
from tests.support.agent_app import Core, open_agent
from tests.support.agent_tasks import limit
from tests.support.anthropic_server import Reply
from tests.support.chat_services import (
    ChatService,
    EchoChat,
    eventually,
    open_channel,
    open_service,
    until_idle,
)
from tests.support.database_files import execute, query

QUIET = ChatChannelSettings(react_emoji="off", progress="off", access=ChatAccess(operate=("*",)))
NOT_PROCESSED = "Your message could not be processed."
POISON = "poison"


class PoisonedTransport:
    """A transport that cannot read one message, as a library with a defect does.

    `entered` counts the attempts to read it; `error` is raised unless it is None.
    """

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        self.entered = asyncio.Semaphore(0)
        self.left = asyncio.Event()
        self.inner: Any = None

    def around(self, transport: ChatTransport) -> ChatTransport:
        self.inner = transport
        return cast(ChatTransport, self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def parse(self, stored: StoredEvent) -> object:
        if POISON in stored.raw:
            self.entered.release()
            if self.error is not None:
                raise self.error
            await self.left.wait()
        return await self.inner.parse(stored)


@pytest.fixture(params=["echo", *(spec.name for spec in CHANNELS)])
async def service(request: pytest.FixtureRequest) -> AsyncGenerator[ChatService]:
    async with open_service(request.param) as opened:
        yield opened


async def letters(gateway: Gateway) -> list[DeadLetter]:
    return await gateway.dead_letters.list_all(LOCAL_OWNER)


async def accepted(app: Core, is_wanted: Callable[[AcceptedMessage], bool]) -> AcceptedMessage:
    """Return the only accepted message as soon as it is as wanted."""
    async with asyncio.timeout(30):
        while True:
            [found] = await app.services.gateway.delivery.list_accepted("echo", "test", 10)
            if is_wanted(found):
                return found


@pytest.mark.slow
async def test_a_message_that_cannot_be_read_is_set_aside_and_retried(
    service: ChatService, tmp_path: Path
) -> None:
    poison, script = PoisonedTransport(ValueError("no such emoji")), [Reply("one"), Reply("two")]
    async with (
        open_agent(tmp_path, script) as app,
        open_channel(service, app, QUIET, poison.around),
    ):
        gateway = app.services.gateway
        bad = await service.say(POISON)
        good = await service.say("hello")
        await service.until(lambda: len(service.replies()) == 2)
        [(told, about), (answer, answered)] = service.replies()
        assert told.startswith(NOT_PROCESSED)
        assert (about, answer, answered) == (bad, "one", good)
        [letter] = await letters(gateway)
        assert (letter.kind, letter.attempts) == ("incoming", MAX_ATTEMPTS)
        assert letter.reason == "ValueError: no such emoji"

        poison.error = None
        poison.left.set()
        await gateway.dead_letters.retry(letter.id, LOCAL_OWNER, "web")
        await service.until(lambda: service.replies()[2:] == [("two", bad)])
        await until_idle(service, app)
        assert await letters(gateway) == []


@pytest.mark.slow
async def test_a_message_that_the_database_refuses_is_set_aside_with_its_words(
    tmp_path: Path,
) -> None:
    service = EchoChat()
    async with open_agent(tmp_path, [Reply("one")]) as app, open_channel(service, app, QUIET):
        execute(
            tmp_path / "larkspur.db",
            "create trigger broken before insert on tasks when new.instruction = 'poison'"
            " begin select raise(abort, 'index corrupt'); end",
        )
        await service.say(POISON)
        other = await service.say("hello", chat=1)
        await service.until(lambda: service.replies(1) == [("one", other)])
        await service.until(lambda: len(service.replies()) == 1)
        [letter] = await letters(app.services.gateway)
        assert (letter.about, letter.principal) == (POISON, "echo:test:mei")
        assert "index corrupt" in letter.reason


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        pytest.param(TransportUnavailable("no route to the service"), 0, marks=pytest.mark.slow),
        pytest.param(FilesUnavailable("the bucket does not answer"), 0, marks=pytest.mark.slow),
        (TransportUnavailable("only this message", isolated=True), 1),
        (KeyError("sender"), 1),
    ],
)
@pytest.mark.first_rows(1)
async def test_only_failures_of_the_message_count(
    tmp_path: Path, error: Exception, attempts: int
) -> None:
    service, poison = EchoChat(), PoisonedTransport(error)
    async with open_agent(tmp_path, []) as app, open_channel(service, app, QUIET, poison.around):
        await service.say(POISON)
        await poison.entered.acquire()
        poison.error = None
        await poison.entered.acquire()
        again = await accepted(app, lambda found: found.may_crash)
        assert again.attempts == attempts + 1, "with the one that has begun"


@pytest.mark.slow
async def test_a_full_disk_does_not_count(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    service, poison = EchoChat(), PoisonedTransport(None)
    async with (
        open_agent(tmp_path, [Reply("done")]) as app,
        open_channel(service, app, QUIET, poison.around),
    ):
        sent = await service.say(f"{POISON} {'x' * 100_000}")
        await poison.entered.acquire()
        limit(app, 1)
        poison.left.set()
        # not the state of the database: small writes still succeed
        await eventually(lambda: "is full: nothing was written" in caplog.text)
        limit(app, 1_000_000)
        await service.until(lambda: service.replies() == [("done", sent)])
        assert query(tmp_path / "larkspur.db", "select attempts from inbox") == [(1,)]


async def test_an_attempt_that_a_shutdown_ends_does_not_count(tmp_path: Path) -> None:
    service, poison = EchoChat(), PoisonedTransport(None)
    async with open_agent(tmp_path, [Reply("done")]) as app:
        async with open_channel(service, app, QUIET, poison.around):
            sent = await service.say(POISON)
            await poison.entered.acquire()
            begun = await accepted(app, lambda found: found.attempts == 1)
            assert begun.may_crash
        stopped = await accepted(app, lambda found: found.attempts == 0)
        assert not stopped.next_attempt
        async with open_channel(service, app, QUIET):
            await service.until(lambda: service.replies() == [("done", sent)])


async def test_messages_that_may_have_killed_the_process_are_processed_one_at_a_time(
    tmp_path: Path,
) -> None:
    service, poison = EchoChat(), PoisonedTransport(None)
    async with open_agent(tmp_path, [Reply("done"), Reply("done")]) as app:
        delivery, inbox = app.services.gateway.delivery, app.services.stores.inbox
        async with open_channel(service, app, QUIET, poison.around):
            await service.say(POISON)
            await poison.entered.acquire()
            await service.say(POISON, chat=1)
            await poison.entered.acquire()  # beside the first one: nothing is known of them
        for found in await delivery.list_accepted("echo", "test", 10):
            message: InboundMessage = found.message
            begin = partial(inbox.begin_processing, message, 1, message.received)
            await app.services.database.write(begin)
        async with open_channel(service, app, QUIET, poison.around):
            await poison.entered.acquire()
            later = await service.say("hello", chat=2)
            await service.until(lambda: service.replies(2) == [("done", later)])
            assert poison.entered.locked(), "the second one waits for the first"
            poison.left.set()
            await poison.entered.acquire()
            await until_idle(service, app)

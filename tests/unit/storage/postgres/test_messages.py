"""Messages between the processes that use one database."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

import pytest

from internal.agent.ports.runtime import ProcessMessages
from internal.storage.database_url import open_database
from tests.support.postgres_server import postgres_url, shared_server

pytestmark = pytest.mark.postgres

LONG = "".join(chr(0x4E00 + number % 20_000) for number in range(30_000))


@pytest.fixture
async def url() -> AsyncGenerator[str]:
    async with postgres_url() as created:
        yield created


class Mailbox:
    """The texts received by one process."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._changed = asyncio.Event()

    def __call__(self, text: str) -> None:
        self.texts.append(text)
        self._changed.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.texts) < count:
                self._changed.clear()
                await self._changed.wait()


async def connect(sender: ProcessMessages, heard: Mailbox) -> None:
    """Wait until sent messages are received: both sides connect in the background."""
    async with asyncio.timeout(20):
        while not heard.texts:  # earlier messages are lost
            sender.send("hello")
            with suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await heard.until(1)
        sender.send("start")
        while heard.texts[-1] != "start":
            await heard.until(len(heard.texts) + 1)
    heard.texts.clear()


async def test_texts_arrive_whole_and_in_order_but_not_at_their_sender(url: str) -> None:
    async with open_database(url) as one, open_database(url) as two:
        assert one.messages is not None
        assert two.messages is not None
        own, heard = Mailbox(), Mailbox()
        with one.messages.listen(own), two.messages.listen(heard):
            await connect(one.messages, heard)
            texts = ["", "a", "a", LONG, "'; drop table runs; --", "a"]
            for text in texts:
                one.messages.send(text)
            await heard.until(len(texts))
            assert heard.texts == texts
            two.messages.send("end")
            await own.until(1)
            assert own.texts == ["end"], "it does not hear itself"


async def test_what_others_write_into_the_channel_is_skipped(url: str) -> None:
    async with open_database(url) as one, open_database(url) as two:
        assert one.messages is not None
        assert two.messages is not None
        heard = Mailbox()
        with one.messages.listen(Mailbox()), two.messages.listen(heard):
            await connect(one.messages, heard)
            for text in ("", "x", "x y", "x 1 ", "x 1 ?z"):
                shared_server().sql(
                    f"select pg_notify('larkspur_messages', '{text}')", url.rpartition("/")[2]
                )
            one.messages.send("end")
            await heard.until(1)
            assert heard.texts == ["end"]

"""Messages of a burst, and the end of a burst."""

import asyncio
from collections.abc import Sequence

from internal.agent.domain.chats import InboundMessage
from internal.channels.chat.message_burst import (
    MAX_MESSAGES,
    BurstCollector,
    BurstEnd,
    BurstItem,
    BurstMessage,
)
from tests.support.echo_channel import echo_message


def row(second: float) -> InboundMessage:
    received = f"2026-11-01T10:00:{second:06.3f}Z"
    return InboundMessage("lark", "cli_1", f"m{second}", "oc_1", "lark:cli_1:ou_1", "{}", received)


def message(second: float) -> BurstMessage:
    return BurstMessage(row(second), echo_message(f"m{second}", "hi", sent_at=None))


async def collected(later: Sequence[BurstItem], age: float = 99.0) -> list[BurstMessage]:
    async def read_later() -> Sequence[BurstItem]:
        return later

    collector = BurstCollector(lambda _: age, 1_000)
    async with asyncio.timeout(5):
        return await collector.collect(row(0), read_later)


async def test_each_message_extends_the_moment() -> None:
    first, second, late = message(0.9), message(1.8), message(2.9)
    assert await collected([first, None, second, late]) == [first, second]


async def test_an_end_is_not_waited_beyond() -> None:
    assert await collected([message(0.5), BurstEnd(), message(0.6)], age=0.0) == [message(0.5)]


async def test_a_burst_has_a_maximum() -> None:
    many = [message(each / 1000) for each in range(1, 2 * MAX_MESSAGES)]
    assert len(await collected(many, age=0.0)) == MAX_MESSAGES - 1


async def test_a_new_message_is_noticed_while_waiting() -> None:
    later: list[BurstItem] = []
    asked = asyncio.Event()

    async def read_later() -> Sequence[BurstItem]:
        asked.set()
        return list(later)

    collector = BurstCollector(lambda _: 0.0, 60_000)
    async with asyncio.timeout(5):
        collecting = asyncio.create_task(collector.collect(row(0), read_later))
        await asked.wait()
        later += [message(0.5), BurstEnd()]
        collector.notify("oc_other")
        collector.notify("oc_1")
        assert await collecting == [message(0.5)]


async def test_without_a_moment_nothing_is_read() -> None:
    async def read_later() -> Sequence[BurstItem]:
        raise AssertionError("the inbox was read")

    assert await BurstCollector(lambda _: 0.0, 0).collect(row(0), read_later) == []

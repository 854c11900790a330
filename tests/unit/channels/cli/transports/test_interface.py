"""Running a client on a blocking transport."""

import asyncio

import pytest

from internal.channels.cli.transports.interface import RefusedStream, Response, drive


async def answer() -> int:
    return 42


def test_coroutine_that_never_suspends_is_run_without_an_event_loop() -> None:
    assert drive(answer()) == 42


def test_coroutine_that_suspends_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="must not suspend"):
        drive(asyncio.sleep(0))


def test_refused_stream_carries_its_response() -> None:
    assert RefusedStream(Response(429, b"{}")).response.status == 429

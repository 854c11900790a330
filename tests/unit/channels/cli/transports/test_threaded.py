"""HTTP requests in threads."""

import asyncio
import threading
from contextlib import aclosing

import pytest

from internal.channels.cli.transports.http import HttpEndpoint
from internal.channels.cli.transports.interface import RefusedStream, Unreachable
from internal.channels.cli.transports.threaded import ThreadedHttpTransport, in_thread
from tests.support.http_answers import AnsweringServer


def transport_to(url: str) -> ThreadedHttpTransport:
    return ThreadedHttpTransport(HttpEndpoint(url, lambda: "t"), lambda: None)


async def test_work_runs_in_another_thread() -> None:
    assert await in_thread(threading.get_ident) != threading.get_ident()


async def test_exception_of_the_work_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 // 0)


async def test_stream_ends_with_its_response(server: AnsweringServer) -> None:
    server.answers["/api/sse"] = (200, b"id: a-1\n\n")
    async with aclosing(transport_to(server.url).stream("/api/sse", "")) as chunks:
        assert b"".join([chunk async for chunk in chunks]) == b"id: a-1\n\n"


async def test_refused_stream_raises_its_response(server: AnsweringServer) -> None:
    server.answers["/api/sse"] = (404, b"{}")
    with pytest.raises(RefusedStream) as refused:
        await anext(transport_to(server.url).stream("/api/sse", ""))
    assert refused.value.response == (404, b"{}")


async def test_reconnect_uses_the_new_address(server: AnsweringServer) -> None:
    server.answers["/health"] = (200, b"{}")
    old, new = (
        HttpEndpoint("http://127.0.0.1:1", lambda: "t"),
        HttpEndpoint(server.url, lambda: "t"),
    )
    transport = ThreadedHttpTransport(old, lambda: new)
    with pytest.raises(Unreachable):
        await transport.request("GET", "/health")
    assert await transport.reconnect()
    assert transport.address == server.url


async def test_work_of_a_signal_handler_runs_in_the_event_loop() -> None:
    done = asyncio.Event()

    async def work() -> None:
        done.set()

    transport_to("http://127.0.0.1:1").start_from_signal(work)
    async with asyncio.timeout(30):
        await done.wait()

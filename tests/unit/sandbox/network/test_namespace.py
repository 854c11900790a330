"""Sockets in the network namespace of a command."""

import asyncio
import socket

from internal.sandbox.network.namespace import NetworkNamespace


async def test_an_answer_that_comes_too_late_is_not_taken_for_the_next_one() -> None:
    link, program = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link.setblocking(False)
    with link, program, socket.socket() as late, socket.socket() as meant:
        namespace = NetworkNamespace(link)
        first = asyncio.create_task(namespace.connect(8_000))
        assert await asyncio.to_thread(program.recv, 100) == b"1 connect 8000"
        first.cancel()
        await asyncio.wait({first})
        second = asyncio.create_task(namespace.listen(5_432))
        assert await asyncio.to_thread(program.recv, 100) == b"2 listen 5432 127.0.0.1"
        meant.bind(("127.0.0.1", 0))
        for number, one in ((b"1", late), (b"2", meant)):
            socket.send_fds(program, [number], [one.fileno()])
        with await second as opened:
            assert opened.getsockname() == meant.getsockname()

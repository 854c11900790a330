"""A web server with watchers, or bare connections that get the same bytes; measures itself.

``python -m tests.bench.fanout ours|bare FOLDER`` prints its port, its token and the path to watch.
``go WAKES EVENTS`` on standard input publishes EVENTS events at once, WAKES times, and then the
word that ends; the answer is ``published``. ``report`` answers the CPU seconds since ``go``.
"""

import asyncio
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import uvloop

from internal.agent.domain.events.envelope import RunIds, encode_envelope, wrap_event
from internal.agent.domain.events.types import OutputDelta
from internal.agent.domain.ids import RunId, SessionId, TaskId
from tests.support.web_app import TOKEN, open_web_app

END = "the last word"
READY = b"event: replay.done"
_NODE = "iter:1:say"
_TEXT = "word "

Publish = Callable[[Sequence[OutputDelta]], None]


def delta(number: int, text: str = _TEXT) -> OutputDelta:
    return OutputDelta(node_id=_NODE, k=number, n=1, text=text)


async def ours(folder: Path) -> None:
    async with open_web_app(folder, streams_per_user=10_000) as app:
        run = await app.task("watch me")
        _say(app.client.port, TOKEN, f"/api/sse?session_id={run.session_id}")
        await _obey(lambda deltas: app.publish(run, *deltas))


class Bare(asyncio.Protocol):
    """A connection that is written to."""

    def __init__(self, readers: list[asyncio.Transport]) -> None:
        self._readers = readers
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # TCP
        self._transport = transport

    def data_received(self, _data: bytes) -> None:
        self._transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\n\r\n" + _chunk(READY + b"\ndata: {}\n\n")
        )
        self._readers.append(self._transport)


async def bare(_folder: Path) -> None:
    readers: list[asyncio.Transport] = []
    run = RunIds(
        SessionId("session-" + 27 * "s"), TaskId("task-" + 27 * "t"), RunId("run-" + 27 * "r")
    )

    def publish(deltas: Sequence[OutputDelta]) -> None:
        now = "2026-01-01T00:00:00.000Z"
        envelopes = [wrap_event(run, one, now, None) for one in deltas]
        frames = [
            b"event: %s\ndata: %s\n\n" % (one.event.encode(), encode_envelope(one))
            for one in envelopes
        ]
        joined = _chunk(b"".join(frames))
        for reader in readers:
            reader.write(joined)

    server = await asyncio.get_running_loop().create_server(
        lambda: Bare(readers), "127.0.0.1", 0, backlog=2048
    )
    _say(server.sockets[0].getsockname()[1], "-", "/")
    await _obey(publish)


async def _obey(publish: Publish) -> None:
    loop, begun = asyncio.get_running_loop(), 0.0
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := (await lines.readline()).decode().split():
        if line[0] == "report":
            _say(time.process_time() - begun)
        else:
            wakes, events, pace = int(line[1]), int(line[2]), float(line[3])
            begun = time.process_time()
            await _publish(publish, wakes, events, pace)
            _say("published")


def _publish(publish: Publish, wakes: int, events: int, pace: float) -> Awaitable[None]:
    async def work() -> None:
        number = 0
        for _ in range(wakes):
            publish([delta(number := number + 1) for _ in range(events)])
            await asyncio.sleep(pace)  # above the pace of the wake-ups: each is one write a reader
        publish([delta(number + 1, END)])

    return work()


def _chunk(payload: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(payload), payload)


def _say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    uvloop.run({"ours": ours, "bare": bare}[sys.argv[1]](Path(sys.argv[2])))

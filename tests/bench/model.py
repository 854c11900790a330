"""A scripted Anthropic model with next to no cost, so that measurements leave it out.

A process: ``python -m tests.bench.model PORT``. The replies are built once by the fake Anthropic
server. The last ``bench:MODE:COUNT`` in the request selects the reply:

- ``words``: COUNT text deltas, the whole reply in one packet.
- ``burst``: COUNT text deltas, ten in a packet, about one packet a millisecond.
- ``each``: COUNT text deltas, each in a packet of its own, about one a millisecond.
- ``late``: a short text after COUNT milliseconds.
- ``calls``: COUNT calls of ``shell true`` in one reply, then a short text.
- ``steps``: COUNT replies with a call of ``list_dir``, no two in a row equal, then a short text.
- ``hostile``: one call of the command in `HOSTILE` with that number, then a short text.
"""

import asyncio
import re
import sys
from functools import cache

import uvloop

from tests.support.anthropic_server import Call, Reply, answer_to

HOSTILE = {
    "a fork bomb runs": "bomb() { bomb | bomb & }; bomb; sleep 600",
    "a command writes 10 GB of output": "yes | head -c 10000000000",
    "a command fills /tmp": "head -c 10000000000 /dev/zero >/tmp/full",
    "a command takes all memory it may have": "exec tail -c 100G /dev/zero",
}
"""Commands that exhaust their limits, for three seconds at most."""

_WANTED = re.compile(rb"bench:(words|burst|each|late|calls|steps|hostile):(\d+)")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"request-id: req_bench\r\ntransfer-encoding: chunked\r\n\r\n"
)
_HEALTH = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
_PACE_SECONDS = 0.001


@cache
def packets(mode: str, count: int) -> tuple[bytes, ...]:
    """The packets of a reply, chunk by chunk, the head with the first."""
    text = "word " * count
    calls = [Call("shell", {"command": "true"}) for _ in range(count)] if mode == "calls" else []
    if mode == "steps":
        calls = [Call("list_dir", {"path": "/".join("." * count)})]
    if mode == "hostile":
        command = list(HOSTILE.values())[count]
        calls = [Call("shell", {"command": command, "timeout_seconds": 3})]
    reply = Reply(text="" if calls else text, pieces=count, calls=calls)
    events = answer_to(reply, {"model": "claude-x"}, b"bench").events()
    size = {"burst": 10, "each": 1}.get(mode, len(events))
    groups = [b"".join(events[at : at + size]) for at in range(0, len(events), size)]
    chunks = [b"%x\r\n%s\r\n" % (len(group), group) for group in groups]
    chunks[0] = _HEAD + chunks[0]
    chunks[-1] += b"0\r\n\r\n"
    return tuple(chunks)


class Connection(asyncio.Protocol):
    """One connection: requests one after the other."""

    def __init__(self) -> None:
        self._held = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # TCP
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._held += data
        head, end, body = self._held.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not end or len(body) < (size := int(length[1]) if length else 0):
            return
        self._held = body[size:]
        if head.startswith(b"GET"):
            self._transport.write(_HEALTH)
        else:
            self._answer(body[:size])

    def _answer(self, body: bytes) -> None:
        mode, count = _WANTED.findall(body)[-1]
        if mode == b"late":
            wait = int(count) / 1000
            late = list(reversed(packets("words", 10)))
            asyncio.get_running_loop().call_later(wait, self._send, late)
            return
        if mode in {b"calls", b"hostile"} and b'"tool_result"' in body:
            mode, count = b"words", 10
        if mode == b"steps":
            done = body.count(b'"tool_result"')
            # no two calls in a row are equal: a run that repeats itself is ended
            mode, count = (b"words", 10) if done >= int(count) else (mode, 1 + done % 2)
        self._send(list(reversed(packets(mode.decode(), int(count)))))

    def _send(self, left: list[bytes]) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(left.pop())
        if left:
            asyncio.get_running_loop().call_later(_PACE_SECONDS, self._send, left)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(
        Connection, "127.0.0.1", int(sys.argv[1]), backlog=512
    )
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())

"""Baseline: a minimal durable gateway on the same libraries.

``python -m tests.bench.floor_gateway PORT MODEL_URL FILE``. Stores requests (SQLite, WAL,
synchronous=FULL, waiting writes share a commit), calls the model with raw bytes over kept
connections, streams its output to the caller and stores the reply. No runs, no events, no replay,
no other watchers, no stop.
"""

import asyncio
import sqlite3
import sys
import threading
from collections.abc import AsyncGenerator
from queue import SimpleQueue
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Bare:
    def __init__(self, model: str, file: str) -> None:
        self._model = urlsplit(model)
        self._free: list[Pair] = []
        self._waiting: SimpleQueue[tuple[str, bytes, asyncio.Future[None]]] = SimpleQueue()
        threading.Thread(target=self._write, args=(file,), daemon=True).start()

    async def message(self, request: Request) -> Response:
        body = await request.body()
        await self._stored("user", body)
        return StreamingResponse(self._relay(body), media_type="text/event-stream")

    async def _stored(self, role: str, body: bytes) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put((role, body, done))
        await done

    def _write(self, file: str) -> None:
        database = sqlite3.connect(file, isolation_level=None)
        database.execute("pragma journal_mode = wal")
        database.execute("pragma synchronous = full")
        database.execute("create table messages (id integer primary key, role text, body blob)")
        while True:
            group = [self._waiting.get()]
            while not self._waiting.empty():
                group.append(self._waiting.get())
            rows = [(role, body) for role, body, _ in group]
            database.execute("begin immediate")
            database.executemany("insert into messages (role, body) values (?, ?)", rows)
            database.execute("commit")
            done = [done for _, _, done in group]
            done[0].get_loop().call_soon_threadsafe(_settle, done)

    async def _relay(self, body: bytes) -> AsyncGenerator[bytes]:
        reader, writer = await self._connected()
        head = f"POST /v1/messages HTTP/1.1\r\nhost: model\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await reader.readuntil(b"\r\n\r\n")
        pieces = []
        while length := int(await reader.readuntil(b"\r\n"), 16):
            piece = (await reader.readexactly(length + 2))[:-2]
            pieces.append(piece)
            yield piece
        await reader.readexactly(2)
        self._free.append((reader, writer))
        await self._stored("assistant", b"".join(pieces))

    async def _connected(self) -> Pair:
        if self._free:
            return self._free.pop()
        return await asyncio.open_connection(self._model.hostname, self._model.port)


def _settle(done: list["asyncio.Future[None]"]) -> None:
    for each in done:
        if not each.done():
            each.set_result(None)


async def hello(_request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


if __name__ == "__main__":
    bare = Bare(sys.argv[2], sys.argv[3])
    routes = [Route("/health", hello), Route("/message", bare.message, methods=["POST"])]
    app = Starlette(routes=routes)
    uvicorn.run(app, port=int(sys.argv[1]), loop="uvloop", http="httptools", log_config=None)

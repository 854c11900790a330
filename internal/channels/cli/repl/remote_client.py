"""A gateway as the client. Every request has a thread of its own, which nobody has to wait for."""

import asyncio
import os
import threading
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

from internal.channels.cli.client import (
    AgentDefaults,
    By,
    SessionItem,
    StreamBatch,
    TaskItem,
    TaskRequest,
    TaskState,
    TranscriptMessage,
    UsageItem,
)
from internal.channels.cli.exit_codes import CliExit
from internal.channels.cli.http_client import Door, Ended, Unreachable
from internal.channels.cli.repl.remote_people import RemotePeople, picked
from internal.channels.cli.sse import StreamFrame
from internal.channels.cli.task_request import Ids

_PAUSE_SECONDS = 0.25
_PAGE = 500
_CONTROLS = {"connected", "replay.done", "workflow.stream.dropped", "hb", "bye"}


class RemoteHost(RemotePeople):
    """Speaks to the gateway that `find` names now: after a restart it may be at another address.

    `find` returns None while there is none.
    """

    async def about(self) -> AgentDefaults:
        """Return the model and the profiles."""
        me = await self.ask(lambda door: door.get("/api/me"))
        profiles = await self.ask(lambda door: door.get("/api/profiles"))
        names = [one["name"] for one in profiles["profiles"]]
        return AgentDefaults(me["model"], profiles["default"], names, me["provider"] == "offline")

    async def submit(self, wish: TaskRequest) -> Ids:
        """Store a task; the gateway runs it."""
        body = {
            "task": wish.task,
            "options": dict(wish.options),
            # so that a request that got no answer can be sent again
            "idempotency_key": os.urandom(16).hex(),
            "attachments": [
                {
                    "name": file.name,
                    "media_type": file.media_type,
                    "data": b64encode(file.content).decode(),
                }
                for file in wish.files
            ],
        }
        named = {"session_id": wish.session_id, "profile": wish.profile}
        body |= {name: value for name, value in named.items() if value is not None}
        made = await self.ask(lambda door: door.post("/api/tasks", body))
        return Ids(made["session_id"], made["task_id"], made["run_id"])

    async def steer(self, task_id: str, text: str) -> bool:
        """Give words to the run at work; never sent twice, whatever becomes of the answer."""
        path = f"/api/tasks/{quote(task_id)}/steer"
        taken = await self.ask(lambda door: door.post(path, {"text": text}), tries=1)
        return bool(taken["taken_as"] == "steering")

    async def stop(self, task_id: str) -> None:
        """Store the wish that a task ends."""

        def stop(door: Door) -> None:
            with suppress(Ended):  # that is what was wanted
                door.stop(quote(task_id))

        await self.ask(stop)

    async def head(self, session_id: str) -> str:
        """Return the place behind all that has happened in a session."""
        path = f"/api/sessions/{quote(session_id, safe='')}/events?limit=1"
        return str((await self.ask(lambda door: door.get(path)))["head"])

    async def watch(self, session_id: str, after: str) -> AsyncGenerator[StreamBatch]:
        """Yield what happens, through restarts of the gateway, until it is closed."""
        known = True
        while True:
            async for frames in self._frames(session_id, after):
                if any(frame.event == "stream.reset" for frame in frames):
                    after = ""
                    yield StreamBatch(reset=True)
                    break
                after = next((one.id for one in reversed(frames) if one.id), after)
                shown = [one.data for one in frames if one.data and one.event not in _CONTROLS]
                if shown or not known:
                    yield StreamBatch(shown)
                known = True
            there = await self.there()
            if known and not there:
                known = False
                yield StreamBatch(is_connected=False)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def sessions(self, limit: int = 50) -> list[SessionItem]:
        """Return sessions, last active first."""
        found = await self.ask(lambda door: door.get(f"/api/sessions?limit={limit}"))
        return [SessionItem(*picked(one, SessionItem._fields)) for one in found["sessions"]]

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session another title."""
        path = f"/api/sessions/{quote(session_id, safe='')}"
        await self.ask(lambda door: door.patch(path, {"title": title}))

    async def remove(self, session_id: str) -> None:
        """Delete a session with all that is its."""
        path = f"/api/sessions/{quote(session_id, safe='')}"
        await self.ask(lambda door: door.delete(path))

    async def transcript(self, session_id: str) -> list[TranscriptMessage]:
        """Return all that was said in a session, oldest first."""
        path = f"/api/sessions/{quote(session_id, safe='')}/messages?limit={_PAGE}"
        pages: list[list[TranscriptMessage]] = []
        cursor: str | None = None
        while True:
            where = path if cursor is None else f"{path}&cursor={quote(cursor)}"
            page = await self.ask(partial(Door.get, path=where))
            pages.insert(0, [_spoken(one) for one in page["messages"]])
            cursor = page["next"]
            if cursor is None:
                return [one for spoken in pages for one in spoken if one.text.strip()]

    async def tasks(self, session_id: str | None = None, limit: int = 50) -> list[TaskItem]:
        """Return tasks, newest first."""
        wanted = {"limit": str(limit)} | ({} if session_id is None else {"session_id": session_id})
        path = f"/api/tasks?{urlencode(wanted)}"
        found = await self.ask(lambda door: door.get(path))
        return [TaskItem(*picked(one, TaskItem._fields)) for one in found["tasks"]]

    async def task(self, task_id: str) -> TaskState:
        """Return a task and how far it is."""
        path = f"/api/tasks/{quote(task_id, safe='')}"
        found = await self.ask(lambda door: door.get(path))
        row, run = TaskItem(*picked(found, TaskItem._fields)), found["run"]
        return TaskState(row, run["run_id"], run["answer"], run["error"])

    async def costs(self, by: By, session_id: str | None = None) -> list[UsageItem]:
        """Return what was used."""
        wanted = {"by": by} | ({} if session_id is None else {"session_id": session_id})
        path = f"/api/usage?{urlencode(wanted)}"
        found = await self.ask(lambda door: door.get(path))
        return [_cost(one["key"], one["usage"], one["cost"]) for one in found["usage"]]

    async def _frames(self, session_id: str, after: str) -> AsyncGenerator[list[StreamFrame]]:
        """Yield the frames of one connection as they come, until it ends."""
        frames: asyncio.Queue[StreamFrame | None] = asyncio.Queue()
        reader = _Reader(self.door, frames)
        path = f"/api/sse?session_id={quote(session_id, safe='')}"
        threading.Thread(target=reader.read, args=(path, after), daemon=True).start()
        try:
            while True:
                batch = [await frames.get()]
                while not frames.empty():
                    batch.append(frames.get_nowait())
                there = [frame for frame in batch if frame is not None]
                if there:
                    yield there
                if len(there) < len(batch):
                    return
        finally:
            reader.closed = True


class _Reader:
    """Reads one stream in a thread. When nobody wants it any more it ends with its next frame."""

    def __init__(self, door: Door, frames: asyncio.Queue[StreamFrame | None]) -> None:
        self.closed = False
        self._door = door
        self._frames = frames
        self._loop = asyncio.get_running_loop()

    def read(self, path: str, after: str) -> None:
        """Hand over every frame, and None behind the last."""
        # Unreachable, Leave: the caller asks again and says so if the gateway stays away.
        # RuntimeError: the loop is closed, the session is over
        with suppress(Unreachable, CliExit, RuntimeError):
            for frame in self._door.stream(path, after):
                if self.closed:
                    return
                self._loop.call_soon_threadsafe(self._frames.put_nowait, frame)
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._frames.put_nowait, None)


def _cost(key: str, usage: dict[str, int], cost: float | None) -> UsageItem:
    kinds = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
    return UsageItem(key, sum(usage[kind] for kind in kinds), usage["output_tokens"], cost)


def _spoken(message: dict[str, Any]) -> TranscriptMessage:
    texts = [part["text"] for part in message["parts"] if part["type"] == "text"]
    return TranscriptMessage(message["role"], "".join(texts), message["created"])

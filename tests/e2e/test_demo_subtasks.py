"""A newcomer sends one sentence to a fresh gateway: subtasks of the offline demo model."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.gateway import call
from tests.support.gateway_process import LARKSPUR, running_gateway
from tests.support.http_client import HttpClient

pytestmark = pytest.mark.timeout(120)

SENTENCE = "Compare these three sites: example-a.com, example-b.com, example-c.com"
FILES = ["example-a.com.md", "example-b.com.md", "example-c.com.md"]
_SIMULATOR = re.compile(r"(http://[\d.]+:\d+)/#key=(\S+)")
Json = dict[str, Any]


class LarkChat:
    """The chat of one person with the bot, in the simulator of `larkspur serve --lark-sim`."""

    def __init__(self, line: str) -> None:
        found = _SIMULATOR.search(line)
        assert found is not None, line
        self._url, self._key = found[1], found[2]

    async def _ask(self, method: str, path: str, body: Json | None = None) -> Json:
        answer = await asyncio.to_thread(call, self._url, method, path, body, self._key)
        return dict(answer)

    async def send(self, text: str) -> None:
        """Send a text as the first person of the simulator."""
        state = await self._ask("GET", "/_sim/changes?since=0")
        person = state["people"][0]["open_id"]
        direct = next(each for each in state["chats"] if each["members"] == [person])
        await self._ask(
            "POST", "/_sim/send", {"person": person, "chat": direct["chat_id"], "text": text}
        )

    async def until_files(self, count: int) -> list[Json]:
        """Return the messages when the bot has sent this many files."""
        messages: dict[str, Json] = {}
        version = 0
        while sum(each["msg_type"] == "file" for each in messages.values()) < count:
            changes = await self._ask("GET", f"/_sim/changes?since={version}")
            version = changes["version"]
            messages |= {each["message_id"]: each for each in changes["messages"]}
        return list(messages.values())


async def until_ended(client: HttpClient) -> list[Json]:
    """Return the rows that a person sees live until the outermost run has ended."""
    rows: list[Json] = []
    async with client.stream("sessions=*") as stream:
        while True:
            frames = await stream.until("workflow.result.final")
            rows += [frame.json() for frame in frames if frame.data]
            if not rows[-1].get("is_subtask"):
                return [row for row in rows if row.get("event_id")]


async def test_one_sentence_becomes_three_subtasks_and_one_answer_with_their_files(
    environ: dict[str, str], home: Path
) -> None:
    argv = (LARKSPUR, "serve", "--lark-sim", "--port", "0")
    async with running_gateway(environ, home, *argv) as gateway:
        chat = LarkChat(await gateway.logged("lark "))
        await gateway.logged("connection connected")
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(until_ended(gateway.client))
            tasks.create_task(chat.send(SENTENCE))
        live = following.result()
        messages = await chat.until_files(len(FILES))
        session = live[0]["session_id"]
        path = f"/api/sessions/{session}/events?limit=500"
        rows = (await gateway.client.get(path)).json()["events"]
        stored = [row["event"] for row in rows]
        async with gateway.client.stream(f"session_id={session}") as stream:
            again: list[Json] = []
            while [row["event_id"] for row in again][-1:] != [live[-1]["event_id"]]:
                frame = await stream.frame()
                assert frame is not None
                row = frame.json() if frame.data else {}
                again += [row] if row.get("event_id") else []
        task = live[0]["task_id"]
        children = (await gateway.client.get(f"/api/tasks/{task}")).json()["children"]

    assert [each["path"] for each in children] == [f"task {n} · analyst" for n in (1, 2, 3)]
    assert {each["status"] for each in children} == {"completed"}
    lanes = [row for row in live if row["event"] == "background.task.dispatched"]
    assert len(lanes) == len(FILES)
    cards = [each for each in messages if each["msg_type"] == "interactive"]
    assert len(cards) == 1
    assert all(f"output/{name}" in cards[0]["body"]["content"] for name in FILES)
    files = [each for each in messages if each["msg_type"] == "file"]
    sent = [json.loads(each["body"]["content"])["file_name"] for each in files]
    assert sorted(sent) == FILES
    assert {each["root_id"] for each in files} == {cards[0]["root_id"]}

    ids = [row["event_id"] for row in live]
    assert again == live
    assert [row for row in stored if row["event_id"] in ids] == live

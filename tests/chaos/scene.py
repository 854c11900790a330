"""The scripted person: gives three tasks, steers, watches, and does not care who serves."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos import oracle
from tests.chaos.house import House, frames, once, open_house
from tests.chaos.script import STEERED, STEPS, final, scripted
from tests.support.anthropic_server import ScriptedAnthropic
from tests.support.http_client import SseFrame

WORDS = {"A": "Please do task A.", "B": "Please do task B.", "C": "Please do task C."}
STEER = "and please be quick about it"


@dataclass
class Person:
    """Gives the tasks and remembers what was acknowledged."""

    house: House
    prefix: str = ""
    tasks: dict[str, dict[str, str]] = field(default_factory=dict)
    steered: dict[str, str] | None = None
    frames: list[SseFrame] = field(default_factory=list)
    session_id: str = ""

    async def submit(self, letter: str) -> None:
        """Give a task until it is acknowledged, and once more: that makes no second one."""
        options = {"permission_mode": "full", "workspace": str(self.house.workspace)}
        body: dict[str, Any] = {"task": WORDS[letter], "options": options}
        body |= {"idempotency_key": f"{self.prefix}key-{letter}"}
        if self.session_id:
            body["session_id"] = self.session_id
        for _ in range(2):
            reply = await self.house.ask("POST", "/api/tasks", body)
            assert reply.status == 201, reply
            task = {name: reply.json()[name] for name in ("task_id", "run_id", "session_id")}
            assert self.tasks.setdefault(letter, task) == task
        self.session_id = self.tasks[letter]["session_id"]

    async def steer(self) -> None:
        """Steer once: without an answer nobody knows whether it was taken."""
        path = f"/api/tasks/{self.tasks['A']['task_id']}/steer"
        reply = await once(await self.house.up(), "POST", path, {"text": STEER})
        assert reply is None or reply.status == 200, reply
        self.steered = None if reply is None else reply.json()

    async def watch(self) -> None:
        """Watch until every task of the session has ended."""
        async with aclosing(self.house.watch(f"session_id={self.session_id}")) as watched:
            async for frame in watched:
                self.frames.append(frame)
                if frame.event in oracle.TERMINAL and await self._all_ended():
                    return

    async def _all_ended(self) -> bool:
        page = await self.house.get(f"/api/tasks?session_id={self.session_id}")
        return oracle.ended(page["tasks"])

    async def act(self) -> None:
        """Do all of it."""
        await self.submit("A")
        async with asyncio.TaskGroup() as together:
            watching = together.create_task(self.watch())
            await self.submit("B")
            await self.steer()
            self.house.model.release(STEERED)
            await self.submit("C")
            # a task that was given after the last look is watched to its end as well
            await watching
            if not await self._all_ended():
                await self.watch()


async def play(folder: Path, environ: dict[str, str], plans: Sequence[str]) -> House:
    """Play the scene with gateways that end by the plans, then hold everything to be true."""
    async with (
        ScriptedAnthropic(scripted(STEPS), record=False) as model,
        open_house(folder, model, environ, plans) as house,
    ):
        person = Person(house)
        async with asyncio.timeout(90):
            await person.act()
            await check(person)
    oracle.check_file(house.home / "larkspur.db")
    return house


async def check(person: Person) -> None:
    """Hold what is told over HTTP against the oracle."""
    house, session_id = person.house, person.session_id
    events = await events_of(house, session_id)
    runs = oracle.runs_of(events)
    for run in runs.values():
        oracle.check_run(run)
    oracle.check_ledger(events, house.workspace / "ledger.txt")
    oracle.check_lane(runs, events)
    replay = await replayed(house, session_id)
    oracle.check_frames(person.frames, replay)
    assert [frame.json() for frame in replay if frame.id] == events
    tasks = (await house.get(f"/api/tasks?session_id={session_id}"))["tasks"]
    shown = [await house.get(f"/api/tasks/{task['task_id']}") for task in reversed(tasks)]
    instructions = {task["run"]["run_id"]: task["task"] for task in shown}
    messages = await messages_of(house, session_id)
    oracle.check_messages(messages, instructions)
    for task in shown:
        assert (task["status"], task["stop_reason"]) == ("completed", "final_answer")
        assert task["run"]["status"] == "completed"
    for letter, given in person.tasks.items():
        (task,) = (task for task in shown if task["task_id"] == given["task_id"])
        assert task["run"]["answer"] == final(letter).text
    check_steering(person, [task["task"] for task in shown], messages)


def check_steering(person: Person, tasks: list[str], messages: list[dict[str, Any]]) -> None:
    """What was acknowledged was said to the model once; all else that is there are the tasks."""
    said = [
        part["text"] for message in messages for part in message["parts"] if part["type"] == "text"
    ]
    times = sum(text.count(STEER) for text in said)
    assert times == 1 if person.steered else times <= 1
    assert [task for task in tasks if task != STEER] == list(WORDS.values())
    assert tasks.count(STEER) <= times


async def events_of(house: House, session_id: str) -> list[dict[str, Any]]:
    """Return all stored envelopes of a session, page by page."""
    events: list[dict[str, Any]] = []
    ids: list[str] = []
    after: str | None = ""
    while after is not None:
        cursor = f"&after={after}" if after else ""
        page = await house.get(f"/api/sessions/{session_id}/events?limit=50{cursor}")
        ids += [row["id"] for row in page["events"]]
        events += [row["event"] for row in page["events"]]
        after = page["next"]
    oracle.check_order(ids)
    return events


async def messages_of(house: House, session_id: str) -> list[dict[str, Any]]:
    """Return all messages of a session, oldest first."""
    page = await house.get(f"/api/sessions/{session_id}/messages?limit=500")
    messages: list[dict[str, Any]] = page["messages"]
    return messages


async def replayed(house: House, session_id: str) -> list[SseFrame]:
    """Return what a reader who begins now is given of the past."""
    seen: list[SseFrame] = []
    async with aclosing(frames(await house.up(), f"session_id={session_id}", "")) as shown:
        async for frame in shown:
            if frame.event == "replay.done":
                break
            seen.append(frame)
    return seen

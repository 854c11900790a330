"""The scenario: a scripted user submits three tasks, steers and follows the events."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos import invariants
from tests.chaos.model_script import STEERED, STEPS, final, scripted_model
from tests.chaos.restarting_gateway import (
    RestartingGateway,
    restarting_gateway,
    stream_frames,
    try_request,
)
from tests.support.http_client import SseFrame
from tests.support.openai_server import ScriptedOpenAI
from tests.support.postgres_server import shared_server

INSTRUCTIONS = {"A": "Please do task A.", "B": "Please do task B.", "C": "Please do task C."}
STEERING = "and please be quick about it"


@dataclass
class ScriptedUser:
    """Submits the tasks and records the acknowledgements."""

    gateway: RestartingGateway
    prefix: str = ""
    tasks: dict[str, dict[str, str]] = field(default_factory=dict)
    steered: dict[str, str] | None = None
    frames: list[SseFrame] = field(default_factory=list)
    session_id: str = ""

    async def submit(self, letter: str) -> None:
        """Submit a task until it is acknowledged, and once more: the same task is returned."""
        options = {"permission_mode": "all", "workspace": str(self.gateway.workspace)}
        body: dict[str, Any] = {"task": INSTRUCTIONS[letter], "options": options}
        body |= {"idempotency_key": f"{self.prefix}key-{letter}"}
        if self.session_id:
            body["session_id"] = self.session_id
        for _ in range(2):
            reply = await self.gateway.request("POST", "/api/tasks", body)
            assert reply.status == 201, reply
            task = {name: reply.json()[name] for name in ("task_id", "run_id", "session_id")}
            assert self.tasks.setdefault(letter, task) == task
        self.session_id = self.tasks[letter]["session_id"]

    async def steer(self) -> None:
        """Steer once. Without an answer it is unknown whether the steering was stored."""
        path = f"/api/tasks/{self.tasks['A']['task_id']}/steer"
        reply = await try_request(
            await self.gateway.wait_until_up(), "POST", path, {"text": STEERING}
        )
        assert reply is None or reply.status == 200, reply
        self.steered = None if reply is None else reply.json()

    async def watch(self) -> None:
        """Follow the events until every task of the session has ended.

        A run that was killed three times at one place is tried again: the question is answered.
        """
        async with aclosing(self.gateway.stream(f"session_id={self.session_id}")) as watched:
            async for frame in watched:
                self.frames.append(frame)
                if frame.event == "workflow.question.asked":
                    await self._try_again()
                if frame.event in invariants.TERMINAL and await self._all_ended():
                    return

    async def _try_again(self) -> None:
        page = await self.gateway.get("/api/questions?status=open")
        for asked in page["questions"]:
            assert asked["kind"] == "recovery", asked
            path = f"/api/questions/{asked['question_id']}/answer"
            reply = await self.gateway.request("POST", path, {"decision": "approve"})
            assert reply.status in {200, 409}, reply  # 409: the answer of a killed process counted

    async def _all_ended(self) -> bool:
        page = await self.gateway.get(f"/api/tasks?session_id={self.session_id}")
        return invariants.have_ended(page["tasks"])

    async def run(self) -> None:
        """Run the whole scenario."""
        await self.submit("A")
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self.watch())
            await self.submit("B")
            await self.steer()
            self.gateway.model.release(STEERED)
            await self.submit("C")
            # follow a task that was submitted after the last check to its end as well
            await watching
            if not await self._all_ended():
                await self.watch()


async def run_scenario(
    folder: Path, environ: dict[str, str], plans: Sequence[str]
) -> RestartingGateway:
    """Run the scenario with processes that crash by the plans, then check all invariants."""
    async with (
        ScriptedOpenAI(scripted_model(STEPS), record=False) as model,
        restarting_gateway(folder, model, environ, plans) as gateway,
    ):
        user = ScriptedUser(gateway)
        async with asyncio.timeout(90):
            await user.run()
            await check(user)
    if url := environ.get("LARKSPUR_DATABASE__URL"):
        invariants.check_tables(lambda query: shared_server().sql(query, url.rpartition("/")[2]))
    else:
        invariants.check_file(gateway.home / "larkspur.db")
    return gateway


async def check(user: ScriptedUser) -> None:
    """Check the responses of the HTTP API against the invariants."""
    gateway, session_id = user.gateway, user.session_id
    events = await list_events(gateway, session_id)
    runs = invariants.group_by_run(events)
    for run in runs.values():
        invariants.check_run(run)
    invariants.check_ledger(events, gateway.workspace / "ledger.txt")
    invariants.check_lane(runs, events)
    replay = await read_replay(gateway, f"session_id={session_id}")
    invariants.check_frames(user.frames, replay)
    assert [frame.json() for frame in replay if frame.id] == events
    tasks = (await gateway.get(f"/api/tasks?session_id={session_id}"))["tasks"]
    shown = [await gateway.get(f"/api/tasks/{task['task_id']}") for task in reversed(tasks)]
    instructions = {task["run"]["run_id"]: task["task"] for task in shown}
    ended = [event["run_id"] for event in events if event["event"] in invariants.TERMINAL]
    messages = await list_messages(gateway, session_id)
    invariants.check_messages(messages, {run_id: instructions[run_id] for run_id in ended})
    for task in shown:
        assert (task["status"], task["stop_reason"]) == ("completed", "final_answer")
        assert task["run"]["status"] == "completed"
    for letter, submitted in user.tasks.items():
        (task,) = (task for task in shown if task["task_id"] == submitted["task_id"])
        assert task["run"]["answer"] == final(letter).text
    check_steering(user, [task["task"] for task in shown], messages)


def check_steering(user: ScriptedUser, tasks: list[str], messages: list[dict[str, Any]]) -> None:
    """Acknowledged steering reached the model once, and no other task was created."""
    said = [
        part["text"] for message in messages for part in message["parts"] if part["type"] == "text"
    ]
    times = sum(text.count(STEERING) for text in said)
    assert times == 1 if user.steered else times <= 1
    assert [task for task in tasks if task != STEERING] == list(INSTRUCTIONS.values())
    assert tasks.count(STEERING) <= times


async def list_events(gateway: RestartingGateway, session_id: str) -> list[dict[str, Any]]:
    """Return all stored envelopes of a session, page by page."""
    events: list[dict[str, Any]] = []
    ids: list[str] = []
    after: str | None = ""
    while after is not None:
        cursor = f"&after={after}" if after else ""
        page = await gateway.get(f"/api/sessions/{session_id}/events?limit=50{cursor}")
        ids += [row["id"] for row in page["events"]]
        events += [row["event"] for row in page["events"]]
        after = page["next"]
    invariants.check_order(ids)
    return events


async def list_messages(gateway: RestartingGateway, session_id: str) -> list[dict[str, Any]]:
    """Return all messages of a session, oldest first."""
    page = await gateway.get(f"/api/sessions/{session_id}/messages?limit=500")
    messages: list[dict[str, Any]] = page["messages"]
    return messages


async def read_replay(gateway: RestartingGateway, query: str) -> list[SseFrame]:
    """Return the frames of the replay for a new reader with a query, from one connection."""
    while True:
        client = await gateway.wait_until_up()
        seen: list[SseFrame] = []
        async with aclosing(stream_frames(client, query, "")) as shown:
            async for frame in shown:
                if frame.event == "replay.done":
                    return seen
                seen.append(frame)
        await gateway.wait_until_replaced(client)

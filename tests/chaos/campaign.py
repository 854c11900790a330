"""A campaign: several users work with one gateway, which is killed again and again.

The users submit, steer, stop, answer and watch over HTTP, and run tasks in terminals. Every
acknowledgement is recorded, so that `campaign_checks` can compare it with the stored data.
"""

import asyncio
import random
import signal
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from tests.chaos import invariants
from tests.chaos.campaign_model import LAST, LETTERS, CampaignModel
from tests.chaos.restarting_gateway import GatewayProcess, RestartingGateway
from tests.support.http_client import SseFrame

SESSIONS = 3
TASKS_PER_SESSION = 5
TERMINAL_TASKS = 2
ASKED = "workflow.question.asked"


@dataclass
class Acknowledged:
    """Acknowledgements of the gateway: task ids by name, stopped task ids, texts of steering."""

    tasks: dict[str, dict[str, str]] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    steering: dict[str, dict[str, str]] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)


class Campaign:
    """The users of one episode and the process that kills the gateway.

    Args:
        seed: fixes the choices of the users and of the killer; the timing differs between runs.
        kills: how many signals are sent to the gateway.
    """

    def __init__(
        self, gateway: RestartingGateway, model: CampaignModel, *, seed: str, kills: int
    ) -> None:
        self.gateway = gateway
        self.model = model
        self.acknowledged = Acknowledged()
        self.sessions: list[str] = []
        self.frames: dict[str, list[SseFrame]] = {}
        self.signals: list[signal.Signals] = []
        self.requested_stops: set[str] = set()
        self.terminals: list[GatewayProcess] = []
        self._seed = seed
        self._kills = kills
        self._received = asyncio.Condition()

    async def run(self) -> None:
        """Let everybody work until all tasks have ended, then ask each session one last time."""
        for number in range(SESSIONS):
            made = await self._post("/api/sessions", {"title": f"session {number}"})
            self.sessions.append(made["session_id"])
        async with asyncio.TaskGroup() as watchers:
            readers = [watchers.create_task(self._watch(each)) for each in self.sessions]
            readers.append(watchers.create_task(self._answer_questions()))
            async with asyncio.TaskGroup() as users:
                for number, session_id in enumerate(self.sessions):
                    users.create_task(self._submit_tasks(number, session_id))
                for number in range(TERMINAL_TASKS):
                    users.create_task(self._use_terminal(number))
                users.create_task(self._kill())
            await self.wait_until_ended()
            for number, session_id in enumerate(self.sessions):
                await self._submit(f"{LAST}{number}", session_id)
            await self.wait_until_ended()
            await self._read_to_the_end()
            for reader in readers:
                reader.cancel()

    async def wait_until_ended(self) -> None:
        """Wait until no task is queued, running or waiting."""
        async with aclosing(self.gateway.stream("sessions=*&replay=none")) as frames:
            if await self._have_ended():
                return
            async for frame in frames:
                ended = frame.event in {*invariants.TERMINAL, "connected"}
                if ended and await self._have_ended():
                    return

    async def tasks(self) -> list[dict[str, Any]]:
        """Return all tasks, newest first."""
        page = await self.gateway.get("/api/tasks?limit=500")
        tasks: list[dict[str, Any]] = page["tasks"]
        return tasks

    async def describe(self) -> str:
        """Return the tasks that are not completed, for a failure message."""
        tasks = [task for task in await self.tasks() if task["status"] != "completed"]
        lines = [f"{each['task_id']} {each['status']} {each['task']}" for each in tasks]
        sent = ", ".join(number.name for number in self.signals)
        return "\n".join([f"{len(self.signals)} of {self._kills} signals: {sent}", *lines])

    async def _have_ended(self) -> bool:
        return invariants.have_ended(await self.tasks())

    async def _post(self, path: str, body: object) -> Any:
        reply = await self.gateway.request("POST", path, body)
        assert reply.status in {200, 201}, reply
        return reply.json()

    async def _submit(self, name: str, session_id: str) -> str:
        body = {
            "task": f"Please do task {name}.",
            "session_id": session_id,
            "idempotency_key": f"key-{name}",
            "options": {
                "workspace": str(self.gateway.workspace),
                "permission_mode": "ask" if name.startswith("P") else "all",
            },
        }
        made: dict[str, str] = await self._post("/api/tasks", body)
        again = await self._post("/api/tasks", body)
        assert again["task_id"] == made["task_id"], "the same key made two tasks"
        self.acknowledged.tasks[name] = made
        return made["task_id"]

    async def _submit_tasks(self, number: int, session_id: str) -> None:
        """Submit the tasks of a session; some are steered, some are stopped."""
        rng = random.Random(f"{self._seed} user {number}")  # noqa: S311 - chaos, not a secret
        for count in range(TASKS_PER_SESSION):
            name = f"{rng.choice(LETTERS)}{number}{count}"
            task_id = await self._submit(name, session_id)
            if rng.random() < 0.5:
                await asyncio.sleep(rng.uniform(0, 0.5))  # steering at any time of the run
                await self._steer(task_id, f"keep in mind {name}")
            if rng.random() < 0.3:
                await asyncio.sleep(rng.uniform(0, 0.5))  # a stop at any time of the run
                await self._stop(task_id, name)

    async def _steer(self, task_id: str, text: str) -> None:
        body = {"text": text, "idempotency_key": text}
        self.acknowledged.steering[text] = await self._post(f"/api/tasks/{task_id}/steer", body)

    async def _stop(self, task_id: str, name: str) -> None:
        self.requested_stops.add(task_id)
        body = {"idempotency_key": f"stop {name}"}
        reply = await self.gateway.request("POST", f"/api/tasks/{task_id}/stop", body)
        assert reply.status in {200, 409}, reply  # 409: it had ended
        if reply.status == 200:
            self.acknowledged.stopped.add(task_id)

    async def _answer_questions(self) -> None:
        """Approve open questions, and retry runs that wait for a person after crashes."""
        async with aclosing(self.gateway.stream("sessions=*&replay=none")) as frames:
            async for frame in frames:
                if frame.event in {ASKED, "connected"}:
                    await self._answer_open_questions()

    async def _answer_open_questions(self) -> None:
        page = await self.gateway.get("/api/questions?status=open&limit=500")
        for question in page["questions"]:
            decision = {"clarify": {"decision": "text", "text": "blue"}}.get(
                question["kind"], {"decision": "approve"}
            )
            question_id = question["question_id"]
            body = {**decision, "idempotency_key": f"answer {question_id}"}
            reply = await self.gateway.request("POST", f"/api/questions/{question_id}/answer", body)
            assert reply.status in {200, 409}, reply  # 409: its run was stopped meanwhile
            if reply.status == 200:
                self.acknowledged.answered.add(question_id)

    async def _watch(self, session_id: str) -> None:
        """Follow a session as a reader that reconnects with its cursor."""
        seen = self.frames[session_id] = []
        async with aclosing(self.gateway.stream(f"session_id={session_id}")) as frames:
            async for frame in frames:
                seen.append(frame)
                async with self._received:
                    self._received.notify_all()

    async def _read_to_the_end(self) -> None:
        """Wait until each reader has received the last event of its session."""
        for session_id in self.sessions:
            page = await self.gateway.get(f"/api/sessions/{session_id}/events?limit=500")
            while page["next"]:
                after = page["next"]
                page = await self.gateway.get(
                    f"/api/sessions/{session_id}/events?limit=500&after={after}"
                )
            await self._wait_for_frame(session_id, page["events"][-1]["id"])

    async def _wait_for_frame(self, session_id: str, last: str) -> None:
        frames = self.frames[session_id]
        async with self._received:
            await self._received.wait_for(lambda: any(frame.id == last for frame in frames))

    async def _use_terminal(self, number: int) -> None:
        """Run a task in a terminal, which is sometimes killed."""
        rng = random.Random(f"{self._seed} terminal {number}")  # noqa: S311 - chaos, not a secret
        await asyncio.sleep(rng.uniform(0, 3))  # a start at any time of the episode
        task = f"Please do task T9{number}."
        terminal = await self.gateway.start("-p", task, "--permission-mode", "all")
        self.terminals.append(terminal)
        try:
            async with asyncio.timeout(rng.choice([1, 60])):
                await terminal.wait()
        except TimeoutError:
            await terminal.kill()

    async def _kill(self) -> None:
        """Kill, stop or suspend the gateway at random times after it is ready."""
        rng = random.Random(f"{self._seed} killer")  # noqa: S311 - chaos, not a secret
        for _ in range(self._kills):
            client = await self.gateway.wait_until_up()
            await asyncio.sleep(rng.uniform(0.0, 1.2))  # the instant is the point of the test
            number = rng.choices([signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP], [8, 1, 1])[0]
            self.signals.append(number)
            self.gateway.signal(number)
            if number == signal.SIGSTOP:
                await asyncio.sleep(rng.uniform(0.1, 1.0))
                self.gateway.signal(signal.SIGKILL)
            await self.gateway.wait_until_replaced(client)


def plans(kills: int) -> Sequence[str]:
    """Return the plans of the processes: none crashes by itself."""
    return ["none"] * (kills + 1)

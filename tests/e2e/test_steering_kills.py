"""A gateway is killed or stopped while a command runs and words wait: neither is lost."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from internal.simulators.lark.simulator import LarkSim
from tests.support.lark_process import Served, open_sim, served
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Call, Reply

pytestmark = pytest.mark.slow

ENVIRON = {"LARKSPUR_AGENT__GATES": "off"}
WORDS = "please use metric units"
COMMAND = "echo needle-$((40+2)); sleep 60"


def model_reply(request: dict[str, Any]) -> Reply:
    """Run the command first, and then answer."""
    if "sleep 60" in json.dumps(request["messages"]):
        return Reply("Done.")
    return Reply(calls=[Call("shell", {"command": COMMAND})])


async def begin(gateway: Served) -> dict[str, Any]:
    """Start the task, steer it once its command has printed, and return it."""
    options = {"permission_mode": "all"}
    made = (await gateway.client.post("/api/tasks", {"task": "run it", "options": options})).json()
    async with gateway.client.stream(f"session_id={made['session_id']}") as stream:
        while (frame := await stream.frame()) is not None and "needle-42" not in frame.data:
            pass
    assert frame is not None
    path = f"/api/tasks/{made['task_id']}/steer"
    steered = await gateway.client.post(path, {"text": WORDS})
    assert steered.json()["taken_as"] == "steering"
    return dict(made)


async def kill(gateway: Served) -> None:
    gateway.kill()
    assert await gateway.over() == -signal.SIGKILL


async def status_at_end(gateway: Served, sim: LarkSim, task_id: str) -> str:
    patient_until = time.monotonic() + 60
    while True:
        task = (await gateway.client.get(f"/api/tasks/{task_id}")).json()
        if task["status"] in {"completed", "failed", "cancelled"}:
            return str(task["status"])
        assert time.monotonic() < patient_until, task
        await sim.lark.changed_within(0.1)


async def test_after_a_kill_the_next_request_has_the_output_and_the_words(tmp_path: Path) -> None:
    async with open_sim() as sim, ScriptedOpenAI(model_reply) as model:
        async with served(tmp_path, sim, model, **ENVIRON) as gateway:
            made = await begin(gateway)
            await kill(gateway)
        async with served(tmp_path, sim, model, **ENVIRON) as gateway:
            assert await status_at_end(gateway, sim, made["task_id"]) == "completed"
            asked = json.dumps(model.requests[-1]["messages"])
            assert "needle-42" in asked
            assert "the process of Larkspur that ran it ended" in asked
            assert asked.count(WORDS) == 1
            page = await gateway.client.get(f"/api/sessions/{made['session_id']}/messages")
            assert page.json()["waiting"] == []


async def test_a_stop_before_a_kill_gives_the_words_back_once(tmp_path: Path) -> None:
    async with open_sim() as sim, ScriptedOpenAI(model_reply) as model:
        async with served(tmp_path, sim, model, **ENVIRON) as gateway:
            made = await begin(gateway)
            await gateway.client.post(f"/api/tasks/{made['task_id']}/stop", {})
            await kill(gateway)
        async with served(tmp_path, sim, model, **ENVIRON) as gateway:
            assert await status_at_end(gateway, sim, made["task_id"]) == "cancelled"
            page = await gateway.client.get(f"/api/sessions/{made['session_id']}/messages")
            back = [(each["waits_for"], each["text"]) for each in page.json()["waiting"]]
            assert back == [("given_back", WORDS)]
            body = {"task": "go on", "session_id": made["session_id"]}
            again = await gateway.client.post("/api/tasks", body)
            assert await status_at_end(gateway, sim, again.json()["task_id"]) == "completed"
            asked = json.dumps(model.requests[-1]["messages"])
            assert "needle-42" in asked
            assert WORDS not in asked

"""Restarts and crashes during one model call: no run is given up without notice to a person."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.tasks import MAX_CRASHES
from tests.chaos import invariants
from tests.chaos.model_script import Steps, final, scripted_model
from tests.chaos.restarting_gateway import NO_CRASH, RestartingGateway, restarting_gateway
from tests.chaos.scenario import INSTRUCTIONS, STEERING, list_events, list_messages
from tests.support.openai_server import ScriptedOpenAI
from tests.support.process_kills import wait_for_event
from tests.support.scripted_model import Reply

Environ = dict[str, str]


@asynccontextmanager
async def gateway_of(
    folder: Path, environ: Environ, steps: Steps, processes: int
) -> AsyncGenerator[RestartingGateway]:
    """Yield a gateway with that many processes, one after the other."""
    async with (
        ScriptedOpenAI(scripted_model(steps), record=False) as model,
        restarting_gateway(folder, model, environ, [NO_CRASH] * processes) as gateway,
        asyncio.timeout(90),
    ):
        yield gateway


async def submit(gateway: RestartingGateway, letter: str) -> dict[str, str]:
    options = {"permission_mode": "all", "workspace": str(gateway.workspace)}
    body = {"task": INSTRUCTIONS[letter], "options": options}
    made: dict[str, str] = (await gateway.request("POST", "/api/tasks", body)).json()
    return made


async def end(gateway: RestartingGateway, number: signal.Signals) -> None:
    """End the current process and wait until it is replaced."""
    client = await gateway.wait_until_up()
    gateway.signal(number)
    await gateway.wait_until_replaced(client)
    await gateway.wait_until_up()


async def ended(gateway: RestartingGateway, task: dict[str, str]) -> dict[str, Any]:
    """Return the task once its run has ended."""
    async for frame in gateway.stream(f"session_id={task['session_id']}"):
        if frame.event in invariants.TERMINAL:
            break
    invariants.check_run(await list_events(gateway, task["session_id"]))
    shown: dict[str, Any] = await gateway.get(f"/api/tasks/{task['task_id']}")
    return shown


@pytest.mark.slow
async def test_a_run_and_its_steering_survive_six_clean_restarts(
    tmp_path: Path, environ: Environ
) -> None:
    steps = {"A": (Reply(text=final("A").text, hold="go"),)}
    async with gateway_of(tmp_path, environ, steps, 7) as gateway:
        task = await submit(gateway, "A")
        for count in range(1, 7):
            await gateway.model.until_asked(count)
            if count == 3:
                path = f"/api/tasks/{task['task_id']}/steer"
                assert (await gateway.request("POST", path, {"text": STEERING})).status == 200
            await end(gateway, signal.SIGTERM)
        gateway.model.release("go")
        run = (await ended(gateway, task))["run"]
        assert (run["answer"], run["attempt"]) == (final("A").text, 1)
        assert str(await list_messages(gateway, task["session_id"])).count(STEERING) == 1


@pytest.mark.slow
async def test_runs_of_a_killed_process_are_retried_one_at_a_time(
    tmp_path: Path, environ: Environ
) -> None:
    held = {letter: (Reply(text=final(letter).text, hold="go"),) for letter in "AB"}
    async with gateway_of(tmp_path, environ, {**held, "C": (final("C"),)}, 2) as gateway:
        suspects = [await submit(gateway, letter) for letter in held]
        await gateway.model.until_open(2)
        await end(gateway, signal.SIGKILL)
        await gateway.model.until_asked(3)
        # a task that was not running at the crash starts beside them and ends
        assert (await ended(gateway, await submit(gateway, "C")))["status"] == "completed"
        assert gateway.model.open_requests == 1
        gateway.model.release("go")
        for task in suspects:
            assert (await ended(gateway, task))["status"] == "completed"


@pytest.mark.slow
async def test_a_run_that_kills_every_process_waits_for_a_person(
    tmp_path: Path, environ: Environ
) -> None:
    steps = {"A": (Reply(text=final("A").text, hold="go"),)}
    async with gateway_of(tmp_path, environ, steps, MAX_CRASHES + 1) as gateway:
        task = await submit(gateway, "A")
        for count in range(1, MAX_CRASHES + 1):
            await gateway.model.until_asked(count)
            await end(gateway, signal.SIGKILL)
        await wait_for_event(gateway, task["session_id"], "workflow.question.asked")
        (asked,) = (await gateway.get("/api/questions?status=open"))["questions"]
        assert (asked["kind"], asked["task_id"]) == ("recovery", task["task_id"])
        assert asked["answer_schema"]["properties"]["decision"] == {
            "enum": ["approve", "text", "reject"]
        }
        path = f"/api/questions/{asked['question_id']}/answer"
        answer = {"decision": "text", "text": STEERING}
        assert (await gateway.request("POST", path, answer)).status == 200
        gateway.model.release("go")
        assert (await ended(gateway, task))["run"]["answer"] == final("A").text
        assert str(await list_messages(gateway, task["session_id"])).count(STEERING) == 1

"""Cost of subtasks: their time beside the time of their model calls, a wait, and their tools."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from internal.agent.domain.delegation.requests import DELEGATION_SPECS
from internal.agent.domain.delegation.subtask import MAX_RUNNING
from internal.agent.domain.react.context_window import tools_tokens
from tests.bench.processes import Server, gateway, with_model
from tests.bench.table import Row, Table, most
from tests.support.anthropic_server import Call, Reply, Rules, ScriptedAnthropic, When
from tests.support.http_client import HttpClient

pytestmark = pytest.mark.bench

ROUNDS = 3
IDLE_SECONDS = 5.0
MODEL_SECONDS = 1.0
PARTS = [{"instruction": "take a second"}] * MAX_RUNNING
RULES = Rules(
    [
        Reply(text="done", delay_seconds=MODEL_SECONDS, when=When(last_user="take a second")),
        Reply(text="held", hold="go", when=When(last_user="be held")),
        Reply(text="held", hold="own", when=When(last_user="hold on")),
        Reply(text="quick", when=When(last_user="be quick")),
        Reply(text="both done", when=When(results=1)),
        Reply(calls=[Call("subagent", {"tasks": PARTS})], when=When(last_user="delegate eight")),
        Reply(calls=[Call("subagent", {"prompt": "be held"})], when=When(last_user="delegate one")),
    ]
)


@asynccontextmanager
async def running_gateway(
    folder: Path, **settings: str
) -> AsyncGenerator[tuple[Server, HttpClient, ScriptedAnthropic]]:
    """Run a gateway with the scripted model of this process."""
    async with ScriptedAnthropic(RULES, record=False) as model:
        given = {**with_model(model.base_url), "LARKSPUR_AGENT__GATES": "off", **settings}
        opened = gateway(folder, **given)
        server = await asyncio.to_thread(opened.__enter__)
        try:
            yield server, HttpClient("127.0.0.1", server.port, server.token), model
        finally:
            model.release("go")
            await asyncio.to_thread(opened.__exit__, None, None, None)


async def submit(client: HttpClient, task: str) -> dict[str, Any]:
    made: dict[str, Any] = (await client.request("POST", "/api/tasks", {"task": task})).json()
    return made


async def events_until_end(client: HttpClient, made: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the envelopes of a session up to the end of its first task."""
    seen: list[dict[str, Any]] = []
    async with client.stream(f"session_id={made['session_id']}&debug=1") as stream:
        while (frame := await stream.frame()) is not None:
            if not frame.event.startswith(("workflow.", "background.")):
                continue
            seen.append(frame.json())
            is_own = seen[-1]["run_id"] == made["run_id"]
            if is_own and frame.event == "workflow.result.final":
                break
    return seen


def call_seconds(events: list[dict[str, Any]]) -> float:
    """Return the seconds from the start of the creator's call to its result."""
    moments = [
        datetime.fromisoformat(each["timestamp"])
        for each in events
        if each["event"] in {"workflow.tool.started", "workflow.tool.completed"}
    ]
    first, last = moments
    return (last - first).total_seconds()


async def model_seconds(model: ScriptedAnthropic) -> float:
    """Return how long as many model calls at once take without a gateway."""
    host, port = urlsplit(model.base_url).netloc.split(":")
    body = {
        "model": "claude-x",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "take a second"}],
        "stream": True,
    }
    headers = {"x-api-key": "x", "anthropic-version": "2023-06-01"}
    bare = HttpClient(host, int(port), "x")

    async def ask() -> None:
        assert (await bare.request("POST", "/v1/messages", body, headers)).status == 200

    begun = time.perf_counter()
    async with asyncio.TaskGroup() as asking:
        for _ in range(MAX_RUNNING):
            asking.create_task(ask())
    return time.perf_counter() - begun


async def test_eight_subtasks_take_as_long_as_one(tmp_path: Path, table: Table) -> None:
    ours: list[float] = []
    bare: list[float] = []
    async with running_gateway(tmp_path / "home") as (_, client, model):
        for is_measured in (False, *[True] * ROUNDS):
            made = await submit(client, "delegate eight")
            seconds = call_seconds(await events_until_end(client, made))
            if is_measured:
                ours.append(seconds)
                bare.append(await model_seconds(model))
    name = "8 subtasks of one model call of 1 s each"
    table.add(Row(name, "s", ours, bare, "8 bare model calls", most(1.4)))


async def cpu_seconds(server: Server) -> float:
    """Return the CPU seconds of a process over some seconds."""
    before = server.cpu
    await asyncio.sleep(IDLE_SECONDS)  # the measured interval
    return server.cpu - before


async def test_creators_that_wait_cost_nothing(tmp_path: Path, table: Table) -> None:
    slots = {"LARKSPUR_DISPATCH__CONCURRENCY": str(MAX_RUNNING + 1)}
    async with running_gateway(tmp_path / "home", **slots) as (server, client, model):
        await events_until_end(client, await submit(client, "be quick"))
        for _ in range(MAX_RUNNING):
            await submit(client, "hold on")
        await model.until_open(MAX_RUNNING)
        plain = [await cpu_seconds(server) for _ in range(ROUNDS)]
        model.release("own")
        for _ in range(MAX_RUNNING):
            await submit(client, "delegate one")
        asked = 1 + 3 * MAX_RUNNING
        await model.until_asked(asked)
        ours = [await cpu_seconds(server) for _ in range(ROUNDS)]
        # one slot is left besides those of the subtasks: the creators hold none
        async with asyncio.timeout(10):
            await events_until_end(client, await submit(client, "be quick"))
    name, floor = f"CPU in {IDLE_SECONDS:g} s of 8 tasks that wait for subtasks", "8 tasks alone"
    own, bare = ([each * 1000 for each in rounds] for rounds in (ours, plain))
    table.add(Row(name, "ms", own, bare, floor, most(1.5)))


def test_tokens_of_the_tools(table: Table) -> None:
    tokens = tools_tokens(DELEGATION_SPECS)
    table.add(Row("tools for subtasks in a prompt", "tokens", [tokens], goal=most(1_500, "ours")))

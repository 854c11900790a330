"""Scenarios for clients of MCP, for the address and for `larkspur mcp serve`."""

import asyncio
import json
import os

import scenarios

ADDRESS = f"{scenarios.URL}/mcp"
HEADERS = {"Authorization": f"Bearer {scenarios.KEY}"}
PROGRAM = os.environ["LARKSPUR_PROGRAM"]
ENVIRON = {"LARKSPUR_HOME": os.environ["LARKSPUR_GATEWAY_HOME"], "HOME": os.environ["HOME"]}
IS_ADDRESS = scenarios.DOOR == "mcp"


def headers(key):
    return {"Authorization": f"Bearer {key}"}


async def _result_of(session, scenario, on_progress=None):
    made = await session.call("create_task", {"instruction": scenarios.prompt(scenario)}, None)
    wanted = {"task_id": json.loads(made)["task_id"], "wait_seconds": 50}
    return await session.call("task_result", wanted, on_progress)


def mcp(connect, *, without=None):
    """Do all scenarios. `connect(key)` is a context manager that gives a session with `names()`
    and `call(tool, arguments, on_progress)`, which returns the text of the result.
    """
    left_out = without or {}

    def one(scenario, work):
        if scenario in left_out:
            scenarios.say(scenario, absent=left_out[scenario])
        else:
            scenarios.attempt(scenario, lambda: asyncio.run(work()))

    async def names(key=scenarios.KEY):
        async with connect(key) as session:
            return await session.names()

    async def call():
        async with connect(scenarios.KEY) as session:
            return await _result_of(session, "plain")

    async def progress():
        seen = []

        async def on_progress(*given, **named):
            seen.append((given, named))

        async with connect(scenarios.KEY) as session:
            await _result_of(session, "slow", on_progress)
        return len(seen)

    async def mistake():
        async with connect(scenarios.KEY) as session:
            return await session.call("task_status", {"task_ids": ["task-none"]}, None)

    one("list", names)
    one("call", call)
    one("progress", progress)
    one("mistake", mistake)
    if IS_ADDRESS:
        one("wrong key", lambda: names(scenarios.WRONG_KEY))
    scenarios.end()

"""Stops that race a pause or an end: none is lost, and no words become a task of their own."""

import asyncio
from collections import Counter
from contextlib import aclosing
from pathlib import Path

import pytest

from tests.chaos import invariants
from tests.chaos.restarting_gateway import NO_CRASH, RestartingGateway, restarting_gateway
from tests.chaos.scenario import list_events
from tests.support.anthropic_server import Call, Reply, Rules, ScriptedAnthropic, When

RACES = 150
DELAY_SECONDS = 0.05
"""Time that the model takes to reply."""

MIN_SECONDS, MAX_SECONDS = DELAY_SECONDS - 0.005, DELAY_SECONDS + 0.015
"""Time of the stop after the model was asked: the reply is stored a few ms after it came."""

ASK = Reply(calls=[Call("request_user", {"question": "Which?"})], delay_seconds=DELAY_SECONDS)
ANSWER = Reply(text="Painted.", delay_seconds=DELAY_SECONDS)
Environ = dict[str, str]


async def until_ended(gateway: RestartingGateway, session_id: str) -> None:
    """Return when every task of a session has ended."""
    async with asyncio.timeout(10), aclosing(gateway.stream(f"session_id={session_id}")) as frames:
        async for frame in frames:
            if frame.event not in invariants.TERMINAL:
                continue
            page = await gateway.get(f"/api/tasks?session_id={session_id}")
            if invariants.have_ended(page["tasks"]):
                return


async def race(gateway: RestartingGateway, text: str, seconds: float) -> str:
    """Steer and stop a task a delay after its model was asked. Return the response to the stop."""
    asked = gateway.model.count
    made = (await gateway.request("POST", "/api/tasks", {"task": text})).json()
    await gateway.model.until_asked(asked + 1)
    due = asyncio.get_running_loop().time() + seconds
    path, session_id = f"/api/tasks/{made['task_id']}", made["session_id"]
    steered = (await gateway.request("POST", f"{path}/steer", {"text": "in green"})).json()
    await asyncio.sleep(due - asyncio.get_running_loop().time())
    stopped = await gateway.request("POST", f"{path}/stop")
    await until_ended(gateway, session_id)
    shown = await gateway.get(path)
    tasks = (await gateway.get(f"/api/tasks?session_id={session_id}"))["tasks"]
    if stopped.status == 200:
        assert (shown["status"], shown["stop_reason"]) == ("cancelled", "user_stop")
        assert len(tasks) == 1 or steered["taken_as"] == "task", tasks
        page = await gateway.get(f"/api/questions?status=open&session_id={session_id}")
        assert page["questions"] == []
    else:
        assert (stopped.status, shown["status"]) == (409, "completed")
    for run in invariants.group_by_run(await list_events(gateway, session_id)).values():
        invariants.check_run(run)
    return str(stopped.json().get("status", stopped.status))


@pytest.mark.chaos
@pytest.mark.parametrize("reply", [ASK, ANSWER], ids=["pause", "end"])
async def test_no_stop_is_lost(tmp_path: Path, environ: Environ, reply: Reply) -> None:
    answered = Counter[str]()
    limits = {"LARKSPUR_SERVER__RATE_LIMIT_PER_MINUTE": "60000"}
    script = Rules([Reply(text="In green.", when=When(last_user="in green")), reply])
    async with (
        ScriptedAnthropic(script, record=False) as model,
        restarting_gateway(tmp_path, model, {**environ, **limits}, [NO_CRASH]) as gateway,
    ):
        for number in range(RACES):
            seconds = MIN_SECONDS + (MAX_SECONDS - MIN_SECONDS) * number / RACES
            answered[await race(gateway, "paint", seconds)] += 1
    assert len(answered) > 1, "every stop came on the same side of the pause or the end"

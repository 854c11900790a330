"""A real `larkspur serve` against a simulated Lark: its start, its deaths, its health."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.simulator import LarkSim
from internal.simulators.lark.user_actions import upload_draft
from tests import ROOT
from tests.support.documents import pdf
from tests.support.lark_gateway import APP
from tests.support.lark_process import RUN, WRONG, idle, replies, served
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Reply, Rules


async def test_the_web_channel_serves_at_once_and_logs_the_run(tmp_path: Path) -> None:
    async with (
        LarkSim([APP], speed=100.0) as sim,
        ScriptedOpenAI([Reply("seen by all")]) as model,
        served(tmp_path, sim, model) as gateway,
    ):
        health = await gateway.until_health("connected", sim)
        assert health["ok"]
        await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "hello")
        await sim.until(lambda _: replies(sim) == ["seen by all"])
        sessions = (await gateway.client.request("GET", "/api/sessions")).json()["sessions"]
        page = f"/api/sessions/{sessions[0]['session_id']}/events"
        events = (await gateway.client.request("GET", page)).json()["events"]
        assert events[0]["event"]["payload"]["channel"] == "lark"
        assert events[-1]["event"]["payload"]["final_answer"] == "seen by all"


@pytest.mark.slow
async def test_a_wrong_secret_leaves_the_web_channel_available(tmp_path: Path) -> None:
    async with (
        LarkSim([APP]) as sim,
        ScriptedOpenAI([Reply("on the web")]) as model,
        served(tmp_path, sim, model, **WRONG) as gateway,
    ):
        health = await gateway.until_health("refused", sim)
        assert not health["ok"]
        assert "check channels.lark.app_id" in health["detail"]
        assert (await gateway.client.request("POST", "/api/tasks", {"task": "hello"})).status == 201
        gateway.process.send_signal(signal.SIGTERM)
        assert await gateway.over() == 0
        assert not any("not-the-secret" in line for line in gateway.said)


@pytest.mark.parametrize(
    "missing", ["LARKSPUR_CHANNELS__LARK__APP_ID", "LARKSPUR_CHANNELS__LARK__APP_SECRET"]
)
@pytest.mark.first_rows(1)
async def test_lark_without_an_app_does_not_start(tmp_path: Path, missing: str) -> None:
    environ = {
        "LARKSPUR_CHANNELS__LARK__ENABLED": "true",
        "LARKSPUR_CHANNELS__LARK__APP_ID": "cli_x",
        "LARKSPUR_CHANNELS__LARK__APP_SECRET": "s",
        "LARKSPUR_HOME": str(tmp_path),
        "HOME": str(tmp_path),
    }
    del environ[missing]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", RUN, "serve", "--port", "0"),
        env={**environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}"},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode == 3
    name = missing.rpartition("__")[2].lower()
    assert f"enabled is true, but {name} is not set" in said.decode()
    assert "Traceback" not in said.decode()


PLANS = [
    f"from:accept_message+{when}:{number}"
    for number in range(1, 15)
    for when in ("before", "after")
]


@pytest.mark.chaos  # tests/e2e/test_lark_kills.py has the phases that differ
@pytest.mark.parametrize("plan", PLANS)
async def test_a_kill_between_event_and_reply_leaves_exactly_one_reply(
    tmp_path: Path, plan: str
) -> None:
    async with (
        LarkSim([APP], speed=500.0) as sim,
        ScriptedOpenAI(Rules([Reply("exactly once")])) as model,
    ):
        sim.set_faults(limits=False)
        async with served(tmp_path, sim, model, plan) as gateway:
            await sim.until(lambda _: sim.lark.delivery.connections, 60)
            await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "hello")
            ended = asyncio.create_task(gateway.over())
            answered = asyncio.create_task(sim.until(lambda _: replies(sim), 60))
            await asyncio.wait([ended, answered], return_when=asyncio.FIRST_COMPLETED)
            gateway.kill()
            await ended
            answered.cancel()
            await asyncio.wait([answered])
        async with served(tmp_path, sim, model) as gateway:
            await sim.until(lambda _: replies(sim) == ["exactly once"], 60)
            await sim.until(lambda _: all(push.done for push in sim.pushes), 60)
            await idle(gateway, sim)
        assert replies(sim) == ["exactly once"]


@pytest.mark.slow
async def test_a_reply_whose_response_was_lost_is_not_sent_twice_after_a_kill(
    tmp_path: Path,
) -> None:
    async with (
        LarkSim([APP], speed=500.0) as sim,
        ScriptedOpenAI(Rules([Reply("exactly once")])) as model,
    ):
        sim.faults.answers.append(AnswerFault("lost", "/reply", times=99))
        async with served(tmp_path, sim, model) as gateway:
            await sim.until(lambda _: sim.lark.delivery.connections, 60)
            await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "hello")
            await sim.until(lambda _: replies(sim), 60)
            gateway.kill()
            await gateway.over()
        sim.faults.answers.clear()
        async with served(tmp_path, sim, model) as gateway:
            await sim.until(lambda log: sum("/reply" in each.what for each in log) >= 2, 60)
            await idle(gateway, sim)
        assert replies(sim) == ["exactly once"]


@pytest.mark.slow
async def test_a_kill_while_a_file_is_fetched_leaves_one_reply_that_has_read_it(
    tmp_path: Path,
) -> None:
    async with (
        LarkSim([APP], speed=500.0) as sim,
        ScriptedOpenAI(Rules([Reply("exactly once")])) as model,
    ):
        person, resources = sim.people[0], "/resources/"
        draft = upload_draft(sim.lark.state, "report.pdf", pdf("Revenue 120"), "file")
        sim.faults.answers.append(AnswerFault("cut", resources, times=1_000))
        async with served(tmp_path, sim, model) as gateway:
            await sim.until(lambda _: sim.lark.delivery.connections, 60)
            await sim.send(person, sim.dm(person), draft)
            await sim.until(lambda log: any(resources in each.what for each in log), 60)
            gateway.kill()
            await gateway.over()
        sim.faults.answers.clear()
        async with served(tmp_path, sim, model) as gateway:
            await sim.until(lambda _: replies(sim) == ["exactly once"], 60)
            await idle(gateway, sim)
        assert replies(sim) == ["exactly once"]
        assert "Revenue 120" in str(model.requests[-1]["messages"])

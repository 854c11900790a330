"""Gateways and workers, as real processes on one PostgreSQL database."""

import asyncio
import base64
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from internal.config.home import read_token
from internal.simulators.lark.simulator import LarkSim
from internal.simulators.lark.websocket.connection import ClientConfig
from tests.support.anthropic_server import Call, Reply, Rules, ScriptedAnthropic, When
from tests.support.documents import picture
from tests.support.gateway_process import LARKSPUR
from tests.support.http_client import HttpClient
from tests.support.lark_gateway import APP, shown_text
from tests.support.many_processes import LEASE_SECONDS, Member, team
from tests.support.refusing_server import RefusingAnthropic, picture_count, refuse_pictures

pytestmark = pytest.mark.postgres


async def submit(member: Member, text: str, **more: Any) -> dict[str, Any]:
    body = {"task": text, "options": {"permission_mode": "all"}, **more}
    made: dict[str, Any] = (await member.client.post("/api/tasks", body)).json()
    return made


STATUS = "select status from runs"


@pytest.mark.slow
async def test_another_worker_resumes_the_run_of_a_killed_one(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    script = [Reply("lost", hold="never"), Reply("The sum is 42.")]
    async with ScriptedAnthropic(script) as model, team(tmp_path, environ, model) as here:
        gateway = await here.serve("--no-work")
        health = (await gateway.client.get("/health")).json()
        assert health["status"] == "degraded"
        detail = "no process executes runs; start larkspur worker"
        assert health["dispatcher"]["detail"] == detail
        await here.work()
        await here.work()
        health = (await gateway.client.get("/health")).json()
        assert health["status"] == "ok"
        made = await submit(gateway, "what is 6*7?")
        await model.until_asked(1)
        killed = await here.owner("select owner from runs")
        assert killed is not gateway
        killed.process.kill()
        loop = asyncio.get_running_loop()
        since = loop.time()
        async with gateway.client.stream(f"session_id={made['session_id']}") as stream:
            await model.until_asked(2)
            recovery_seconds = loop.time() - since
            frames = await stream.until("workflow.result.final")
        assert "The sum is 42." in frames[-1].data
        assert await here.owner("select owner from runs") not in (killed, gateway)
        await here.until("select count(*) from processes", (2,))
        assert recovery_seconds < LEASE_SECONDS + 2
        assert sorted(name.split()[0] for name in health["processes"]) == [
            "gateway",
            "worker",
            "worker",
        ]


@pytest.mark.slow
async def test_a_stopped_worker_ends_its_runs_and_hands_over_after_a_second_signal(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    script = [Reply("first", hold="one"), Reply("lost", hold="never"), Reply("second")]
    async with ScriptedAnthropic(script) as model, team(tmp_path, environ, model) as here:
        gateway = await here.serve("--no-work")
        worker = await here.work()
        await submit(gateway, "one")
        await model.until_asked(1)
        worker.process.terminate()
        await worker.until_said("Waiting up to 30 s for 1 active run")
        model.release("one")
        assert await worker.over() == 0
        assert await here.rows("select status, fence from runs") == [("completed", 1)]

        worker = await here.work()
        await submit(gateway, "two")
        await model.until_asked(2)
        worker.process.terminate()
        await worker.until_said("Waiting up to 30 s for 1 active run")
        assert await worker.end(signal.SIGINT) == 0
        assert await here.rows("select count(*) from runs where status = 'queued'") == [(1,)]
        await here.work()
        await here.until(STATUS, ("completed",), ("completed",))
        assert await here.rows("select max(fence), max(crashes) from runs") == [(2, 0)]


@pytest.mark.slow
async def test_a_gateway_does_not_send_the_picture_that_the_model_refused_to_another_one(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    """Each gateway executes one run at a time: a held run leaves the work to the other gateway."""
    blind = refuse_pictures("messages.0.content.1: image input is not supported by this model")
    script = Rules(
        [
            Reply("held", hold="one", when=When(last_user="hold one")),
            Reply("held", hold="two", when=When(last_user="hold two")),
            Reply("fine"),
        ]
    )
    png = {
        "name": "a.png",
        "media_type": "image/png",
        "data": base64.b64encode(picture("PNG")).decode(),
    }
    environ = {**environ, "LARKSPUR_DISPATCH__CONCURRENCY": "1"}
    async with RefusingAnthropic(blind, script) as model, team(tmp_path, environ, model) as here:
        gateways = [await here.serve() for _ in range(2)]
        first = gateways[0]

        async def show_the_picture() -> Member:
            """Return the gateway that executed the run with the picture."""
            made = await submit(first, "what is this?", attachments=[png])
            run = f"from runs where id = '{made['run_id']}'"
            await here.until(f"select status {run}", ("completed",))
            return await here.owner(f"select owner {run}")

        await submit(first, "hold one")
        await model.until_asked(1)
        learner = await show_the_picture()
        assert len(model.refused) == 1
        await submit(first, "hold two")
        await model.until_asked(4)  # the picture was asked about twice
        model.release("one")
        other = await show_the_picture()
        model.release("two")
        assert {learner.process.pid, other.process.pid} == {one.process.pid for one in gateways}
        assert len(model.refused) == 1
        assert "cannot see pictures" in str(model.requests[-1]["messages"])
        assert picture_count(model.requests[-1]) == 0


def answer(request: dict[str, Any]) -> Reply:
    """Answer with the last word of the person."""
    content = request["messages"][-1]["content"]
    text = content if isinstance(content, str) else content[-1]["text"]
    return Reply(text=f"re {text.split()[-1]}")


def replies(sim: LarkSim, person: int) -> list[tuple[str, str]]:
    found = [one for one in sim.messages(sim.dm(sim.people[person])) if one.sender_type == "app"]
    return [(text, one.parent_id) for one in found if (text := shown_text(sim, one)) is not None]


async def until_answered(sim: LarkSim, person: int, count: int) -> None:
    await sim.until(lambda _: len(replies(sim, person)) >= count, 60)


@pytest.mark.slow
async def test_two_gateways_and_two_workers_answer_each_message_once_and_in_order(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    async with (
        LarkSim([APP], speed=100.0, config=ClientConfig(PingInterval=1)) as sim,
        ScriptedAnthropic(answer) as model,
        team(tmp_path, environ, model, sim) as here,
    ):
        for _ in range(2):
            await here.serve("--no-work")
            await here.work()
        await sim.until(lambda _: len(sim.lark.delivery.connections) == 2, 60)
        people = range(len(sim.people))
        asked: dict[int, list[str]] = {person: [] for person in people}
        for number in range(4):
            for person in people:
                chat = sim.dm(sim.people[person])
                message_id = await sim.send_text(sim.people[person], chat, f"say {number}")
                asked[person].append(message_id)
            await sim.until(lambda _: all(push.done for push in sim.pushes), 60)
        for person in people:
            await until_answered(sim, person, 4)
        leader = await here.owner("select owner from leaderships where name like 'lark:%'")
        leader.process.send_signal(signal.SIGSTOP)
        for person in people:
            chat = sim.dm(sim.people[person])
            asked[person].append(await sim.send_text(sim.people[person], chat, "say 4"))
        for person in people:
            await until_answered(sim, person, 5)
        other = await here.owner("select owner from leaderships where name like 'lark:%'")
        assert other is not leader
        leader.process.send_signal(signal.SIGCONT)
        chat = sim.dm(sim.people[0])
        asked[0].append(await sim.send_text(sim.people[0], chat, "say 5"))
        await until_answered(sim, 0, 6)
        other.process.kill()
        asked[0].append(await sim.send_text(sim.people[0], chat, "say 6"))
        await until_answered(sim, 0, 7)
        assert await here.owner("select owner from leaderships where name like 'lark:%'") is leader
        for person in people:
            expected = [(f"re {n}", message_id) for n, message_id in enumerate(asked[person])]
            assert replies(sim, person) == expected
        owners = await here.rows("select distinct owner from runs")
        assert all(owner.startswith("worker-") for (owner,) in owners)


@pytest.mark.parametrize("argv", [("worker",), ("serve", "--no-work")])
@pytest.mark.first_rows(1)
async def test_sqlite_is_refused_for_several_processes(
    environ: dict[str, str], argv: tuple[str, ...]
) -> None:
    process = await asyncio.create_subprocess_exec(
        LARKSPUR,
        *argv,
        env={**environ, "LARKSPUR_LLM__PROVIDER": "offline"},
        stderr=asyncio.subprocess.PIPE,
    )
    _, message = await process.communicate()
    assert process.returncode == 3
    assert "needs PostgreSQL" in message.decode()
    assert "Set database.url" in message.decode()


HEALTH = re.compile(r"Its health: http://([\d.]+):(\d+)/health")


@pytest.mark.slow
async def test_a_worker_answers_health_checks_on_a_port_of_its_own(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    script = [Reply("The sum is 42.", hold="go")]
    async with ScriptedAnthropic(script) as model, team(tmp_path, environ, model) as here:
        gateway = await here.serve("--no-work")
        worker = await here.start("worker", "--health-port", "0")
        found = next(match for line in worker.said if (match := HEALTH.search(line)))
        client = HttpClient(found[1], int(found[2]), read_token(worker.home))
        reply = await client.get("/health")
        health = reply.json()
        assert (reply.status, health["status"], health["channels"]) == (200, "ok", {})
        name = f"worker {worker.process.pid} on "
        [own] = [each for each in health["processes"] if each.startswith(name)]
        assert health["processes"][own]["ok"]
        stranger = HttpClient(found[1], int(found[2]), "wrong")
        assert (await stranger.get("/health")).json() == {"status": "ok"}
        for path in ("/", "/api/tasks", "/api/me", "/mcp"):
            assert (await client.get(path)).status == 404
        refused = await client.request("GET", "/health", headers={"Host": "example.com"})
        assert refused.status == 421

        await submit(gateway, "what is 6*7?")
        await model.until_asked(1)
        shown = (await client.get("/health")).json()
        assert shown["dispatcher"]["detail"] == "1 active runs"
        assert "1 active run, " in shown["processes"][own]["detail"]
        worker.process.terminate()  # it waits for its run, and answers meanwhile
        await worker.until_said("Waiting up to 30 s for 1 active run")
        assert (await client.get("/health")).json()["dispatcher"]["ok"] is False
        model.release("go")
        assert await worker.over() == 0


@pytest.mark.slow
async def test_a_port_that_is_in_use_is_named(tmp_path: Path, environ: dict[str, str]) -> None:
    async with ScriptedAnthropic([]) as model, team(tmp_path, environ, model) as here:
        gateway = await here.serve("--no-work")
        port = str(gateway.client.port)
        process = await asyncio.create_subprocess_exec(
            *(LARKSPUR, "worker", "--health-port", port),
            env={**here.environ, "LARKSPUR_HOME": str(gateway.home)},
            cwd=tmp_path,
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await process.communicate()
        sentence = f"Port {port} on 127.0.0.1 is already in use. Stop the other program or"
        sentence += " choose another port with the setting"
        assert f"{sentence} dispatch.health_port.\n" == said.decode().splitlines(keepends=True)[-1]
        assert process.returncode == 1


@pytest.mark.slow
async def test_another_host_goes_on_with_sessions_that_have_no_files(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    """Two workers on hosts of their own; the first one dies while it executes two runs."""
    command = Call("shell", {"command": "echo of the first host > note.txt"})
    script = Rules(
        [
            Reply("The sum is 42.", hold="sum", when=When(last_user="sum")),
            Reply("written", hold="note", when=When(last_user="note", results=1)),
            Reply(calls=[command], when=When(last_user="note")),
        ]
    )
    shared = {"LARKSPUR_ATTACHMENTS__FOLDER": str(tmp_path / "attachments")}
    environ = {**environ, **shared, "LARKSPUR_AGENT__GATES": "off"}
    async with ScriptedAnthropic(script) as model, team(tmp_path, environ, model) as here:
        gateway = await here.serve("--no-work")
        first = await here.work_on("one")
        without, with_files = [await submit(gateway, text) for text in ("the sum", "a note")]
        await model.until_asked(3)
        assert await here.rows("select host from sessions order by host") == [("",), ("one",)]
        first.process.kill()
        await first.over()
        second = await here.work_on("two")
        model.release("sum")
        model.release("note")
        async with gateway.client.stream(f"session_id={without['session_id']}") as stream:
            frames = await stream.until("workflow.result.final")
        assert "The sum is 42." in frames[-1].data
        assert await here.owner("select owner from runs order by arrival limit 1") is second
        statuses = "select status from runs order by arrival"
        await here.until(statuses, ("completed",), ("queued",))
        await here.rows(
            "update hosts set seen = '2026-01-31T08:00:00.000Z' where name = 'one' returning name"
        )
        query = f"session_id={with_files['session_id']}"
        async with gateway.client.stream(query) as stream:
            frames = await stream.until("workflow.notice")
        assert frames[-1].json()["payload"]["text"] == (
            "Waiting for host one, where the files of this session are; it was last seen 2026-01-31"
            " 08:00 UTC. To go on without these files: larkspur sessions move"
            f" {with_files['session_id']} --any-host"
        )
        assert await here.rows(statuses) == [("completed",), ("queued",)]
        assert await here.rows("select host from sessions order by host") == [("",), ("one",)]

        again = await here.work_on("one")
        async with gateway.client.stream(f"session_id={with_files['session_id']}") as stream:
            frames = await stream.until("workflow.result.final")
        assert "written" in frames[-1].data
        last = "select owner from runs order by arrival desc limit 1"
        assert await here.owner(last) is again

"""A gateway is killed while it makes and sends files: each exists once and is sent once.

A tool writes two files, they become artifacts, and the answer and both files are sent to Lark.
"""

import asyncio
import json
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.react.turn import OUTCOME_UNKNOWN
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import ChatMessage
from internal.simulators.lark.simulator import LarkSim
from tests.support.lark_gateway import shown_text
from tests.support.lark_process import Served, from_bot, idle, open_sim, say, served
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Call, Reply

FILES = {"one.txt": "first", "two.txt": "second"}
WRITES = [
    Call("write_file", {"path": f"output/{name}", "content": text}) for name, text in FILES.items()
]
ENVIRON = {
    "LARKSPUR_AGENT__GATES": "off",
    "LARKSPUR_TOOLS__ALLOW": '["write_file"]',
    "LARKSPUR_CHANNELS__LARK__PROGRESS": "off",
    "LARKSPUR_CHANNELS__LARK__REACT_EMOJI": "off",
}
SENT = Counter(["Here they are.", *FILES])
COMMITS = range(1, 31)
"""The commits of a gateway from the message on, and some more."""

PHASES = {
    "stored, not used": "stored:upsert_attachment_use",
    "made, not recorded": "unstored:insert_artifact",
    "recorded": "stored:insert_artifact",
    "answered, not recorded": "unstored:end_run",
    "ended, nothing sent": "stored:end_run",
    "being sent": "stored:begin_attempt",
    "sent, not recorded": "unstored:settle_message",
    "answer sent, files not": "stored:settle_message",
}


def model_reply(request: dict[str, Any]) -> Reply:
    """Write the files, again if it is unknown whether they were written; then answer."""
    last = request["messages"][-1]
    if last["role"] == "tool" and OUTCOME_UNKNOWN not in json.dumps(request["messages"][-2:]):
        return Reply("Here they are.")
    return Reply(calls=WRITES)


def sent(sim: LarkSim) -> Counter[str]:
    """Count the texts and file names that the bot sent."""
    return Counter(_shown(sim, message) for message in from_bot(sim))


def _shown(sim: LarkSim, message: ChatMessage) -> str:
    if message.msg_type == "file":
        return sim.lark.state.media[json.loads(message.content)["file_key"]].name
    text = shown_text(sim, message) or ""
    return next((name for name in FILES if text.startswith(f"{name} (")), text)


async def check_artifacts(gateway: Served) -> None:
    """Check that each file exists once, with its bytes, in one version."""
    reply = await gateway.client.get("/api/artifacts?versions=all")
    artifacts = reply.json()["artifacts"]
    assert {each["name"]: each["version"] for each in artifacts} == dict.fromkeys(FILES, 1)
    for each in artifacts:
        content = await gateway.client.get(f"/api/artifacts/{each['artifact_id']}/content")
        assert content.body.decode() == FILES[each["name"]]


async def run_with_kill(folder: Path, crash: str) -> int:
    """Make and send the files with a process that is killed, if it gets that far, and another one.

    Return the number of commits of the first one since the message.
    """
    async with open_sim() as sim, ScriptedOpenAI(model_reply) as model:
        plan = f"from:accept_message+{crash}"
        async with served(folder, sim, model, plan, **ENVIRON) as gateway:
            await sim.until(lambda _: sim.lark.delivery.connections, 60)
            message = await say(sim, "write two files")
            killed = asyncio.create_task(gateway.over())
            done = asyncio.create_task(finished(gateway, sim))
            await asyncio.wait([killed, done], return_when=asyncio.FIRST_COMPLETED)
            gateway.kill()
            assert await killed == -signal.SIGKILL
            done.cancel()
            await asyncio.wait([done])
            found = int((folder / "count").read_text())
        async with served(folder, sim, model, **ENVIRON) as gateway:
            await sim.until(lambda _: sim.lark.delivery.connections, 60)
            sim.redeliver(message)
            await finished(gateway, sim)
            await check_artifacts(gateway)
        assert sent(sim) == SENT
    return found


async def finished(gateway: Served, sim: LarkSim) -> None:
    """Return when everything was sent, or when the gateway does not answer any more."""
    with suppress(OSError, EOFError):
        await sim.until(lambda _: sent(sim) >= SENT, 60)
        await idle(gateway, sim)


@pytest.mark.parametrize(
    "crash",
    [
        pytest.param(crash, id=phase, marks=() if phase == "being sent" else pytest.mark.slow)
        for phase, crash in PHASES.items()
    ],
)
@pytest.mark.slow
async def test_a_kill_in_each_phase_leaves_each_file_once(tmp_path: Path, crash: str) -> None:
    await run_with_kill(tmp_path, crash)


@pytest.mark.slow
async def test_a_kill_between_upload_and_send_leaves_each_file_once(tmp_path: Path) -> None:
    async with open_sim() as sim, ScriptedOpenAI(model_reply) as model:
        # Lark carries the call out after the process that made it was killed
        late = AnswerFault("late", "/reply", times=1, content="file_key", seconds=1.0)
        sim.set_faults(answers=[late])
        async with served(tmp_path, sim, model, **ENVIRON) as gateway:
            await sim.until(lambda _: sim.lark.delivery.connections, 60)
            await say(sim, "write two files")
            await sim.until(lambda _: not sim.faults.answers[0].times, 60)
            gateway.kill()
            assert await gateway.over() == -signal.SIGKILL
        async with served(tmp_path, sim, model, **ENVIRON) as gateway:
            await finished(gateway, sim)
            await sim.until(lambda _: sum(sent(sim).values()) >= SENT.total(), 60)
            await check_artifacts(gateway)
        assert sent(sim) == SENT


@pytest.mark.chaos
async def test_the_commit_numbers_cover_all_of_it(tmp_path: Path) -> None:
    assert await run_with_kill(tmp_path, "none") in COMMITS


@pytest.mark.chaos
@pytest.mark.parametrize("number", COMMITS)
@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_kill_at_a_commit_leaves_each_file_once(
    tmp_path: Path, side: str, number: int
) -> None:
    await run_with_kill(tmp_path, f"{side}:{number}")

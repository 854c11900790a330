"""After `kill -9` the model gets an unchanged request: the same bytes and opaque fields."""

import asyncio
import base64
import signal
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.restarting_gateway import NO_CRASH, RestartingGateway, restarting_gateway
from tests.support.anthropic_server import Call, Reply, Rules, ScriptedAnthropic, When
from tests.support.documents import picture
from tests.support.openai_server import Manners, ScriptedOpenAI

pytestmark = pytest.mark.slow

EARLIER, READS = 7, 9
LINE, LINES = "a line of a long file", 800
READ = Call("read_file", {"path": "long.txt"})
RULES = Rules(
    [
        Reply(text="All of it.", when=When(last_user="last", results=2), hold="2"),
        Reply(calls=[READ, READ], when=When(last_user="last"), hold="1"),
        Reply(text="I have read it.", when=When(results=1)),
        Reply(thinking="Let me look.", calls=[READ]),
    ]
)


async def submit(
    gateway: RestartingGateway, text: str, session: str | None = None, **more: Any
) -> dict[str, str]:
    options = {"permission_mode": "all", "workspace": str(gateway.workspace)}
    body = {"task": text, "session_id": session, "options": options, **more}
    made: dict[str, str] = (await gateway.request("POST", "/api/tasks", body)).json()
    return made


async def event(gateway: RestartingGateway, task: dict[str, str], name: str, **fields: Any) -> None:
    """Return when such an event of a run is stored."""
    async with aclosing(gateway.stream(f"session_id={task['session_id']}")) as frames:
        async for frame in frames:
            if frame.event != name:
                continue
            shown = frame.json()
            if shown["run_id"] == task["run_id"] and fields.items() <= shown["payload"].items():
                return


async def have_a_long_session(gateway: RestartingGateway) -> str:
    """Have some runs with a picture, a long file and thinking; return the session."""
    (gateway.workspace / "long.txt").write_text(f"{LINE}\n" * LINES)
    png = base64.b64encode(picture("PNG")).decode()
    files = [{"name": "a.png", "media_type": "image/png", "data": png}]
    session = None
    for number in range(EARLIER):
        task = await submit(gateway, f"task {number}", session, attachments=files)
        await event(gateway, task, "workflow.result.final")
        session = task["session_id"]
    assert session is not None
    return session


@pytest.mark.parametrize("context_window", [200_000, 40_000], ids=["fits", "too long"])
async def test_a_request_after_a_kill_is_the_one_before_it(
    tmp_path: Path, environ: dict[str, str], context_window: int
) -> None:
    environ |= {
        "LARKSPUR_AGENT__GATES": "off",
        "LARKSPUR_LLM__CONTEXT_WINDOW": str(context_window),
        "LARKSPUR_LLM__MAX_OUTPUT_TOKENS": "4000",
    }
    async with (
        asyncio.timeout(150),
        ScriptedAnthropic(RULES) as model,
        restarting_gateway(tmp_path, model, environ, [NO_CRASH] * 3) as gateway,
    ):
        session = await have_a_long_session(gateway)
        asked = model.count
        task = await submit(gateway, "the last task", session)
        for iteration in (1, 2):
            await event(gateway, task, "workflow.node.started", iteration=iteration)
            await model.until_asked(asked + 1)
            client = await gateway.wait_until_up()
            gateway.signal(signal.SIGKILL)
            await gateway.wait_until_replaced(client)
            await model.until_asked(asked := asked + 2)
            assert model.bodies[-1] == model.bodies[-2]
            model.release(str(iteration))
        await event(gateway, task, "workflow.result.final", final_answer="All of it.")
    is_whole = model.bodies[-1].count(LINE.encode()) == READS * LINES
    assert is_whole == (context_window > 100_000)


SIGNED = {"google": {"thought_signature": "c2lnbmVkIGJ5IHRoZSBtb2RlbA"}}
DETAILS = [{"type": "reasoning.encrypted", "data": "c2VhbGVk", "id": "rs_1", "index": 0}]
WIRE_ID = "functions.shell:0"
TOUCH = Call("shell", {"command": "touch ran"}, id=WIRE_ID, opaque={"extra_content": SIGNED})
SIGNING = Rules(
    [
        Reply(text="It is the fork.", when=When(last_user="fork")),
        Reply(text="It ran.", when=When(results=1), hold="end"),
        Reply(text="I run it.", calls=[TOUCH], opaque={"reasoning_details": DETAILS}),
    ]
)


async def test_opaque_fields_survive_kills_before_and_after_a_call_and_a_fork(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    """The gateway is killed while a person is asked about the call, and while the model answers."""

    async def kill(gateway: RestartingGateway) -> None:
        client = await gateway.wait_until_up()
        gateway.signal(signal.SIGKILL)
        await gateway.wait_until_replaced(client)

    environ |= {"LARKSPUR_AGENT__GATES": "off"}
    async with (
        asyncio.timeout(90),
        ScriptedOpenAI(SIGNING, manners=Manners(opaque=True)) as model,
        restarting_gateway(tmp_path, model, environ, [NO_CRASH] * 4) as gateway,
    ):
        options = {"workspace": str(gateway.workspace)}
        body = {"task": "run it", "options": options}
        task = (await gateway.request("POST", "/api/tasks", body)).json()
        await event(gateway, task, "workflow.question.asked")
        await kill(gateway)
        (asked,) = (await gateway.get("/api/questions?status=open"))["questions"]
        assert model.count == 1
        path = f"/api/questions/{asked['question_id']}/answer"
        assert (await gateway.request("POST", path, {"decision": "approve"})).status == 200
        await model.until_asked(2)
        await kill(gateway)
        await model.until_asked(3)
        model.release("end")
        await event(gateway, task, "workflow.result.final", final_answer="It ran.")
        await kill(gateway)
        path = f"/api/sessions/{task['session_id']}/fork"
        fork = (await gateway.request("POST", path, {})).json()
        of_fork = await submit(gateway, "and in the fork?", fork["session_id"])
        await event(gateway, of_fork, "workflow.result.final", final_answer="It is the fork.")
    assert len(model.requests) == 4
    assert model.bodies[1] == model.bodies[2]
    for request in model.requests[1:]:
        (message,) = (each for each in request["messages"] if each.get("tool_calls"))
        assert message["reasoning_details"] == DETAILS
        (call,) = message["tool_calls"]
        assert (call["id"], call["extra_content"]) == (WIRE_ID, SIGNED)

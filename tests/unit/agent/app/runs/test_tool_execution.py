"""Tool execution through a real gateway: timeouts, long results and long arguments."""

from pathlib import Path

import msgspec

from tests.support.agent_app import open_agent, plan, sound
from tests.support.anthropic_server import Call, Reply
from tests.support.s3_server import s3_server


async def test_a_tool_times_out(home: Path) -> None:
    script = [
        Reply(calls=[plan()]),
        Reply(calls=[Call("list_dir", {})]),
        Reply(text="too slow"),
    ]
    environ = {"LARKSPUR_AGENT__TOOL_TIMEOUT_SECONDS": "0.000001"}
    async with open_agent(home, script, environ) as here:
        made = await here.submit("search")
        events = await here.end_of(made)
        sound(events)
        failed = next(e for e in events if e["event"] == "workflow.tool.completed")
        assert "timed out after" in failed["payload"]["error"]


async def test_a_long_result_keeps_its_beginning_and_its_end(home: Path) -> None:
    show = "for i in $(seq 1 20000); do echo line $i; done"
    script = [
        Reply(calls=[plan()]),
        Reply(calls=[Call("shell", {"command": show})]),
        Reply(text="long"),
    ]
    async with open_agent(home, script) as here:
        made = await here.submit("show a lot")
        events = await here.end_of(made)
        sound(events)
        completed = next(e for e in events if e["event"] == "workflow.tool.completed")
        assert "line 1\n" in completed["payload"]["result"]
        assert "line 20000" in completed["payload"]["result"]
        assert all(len(msgspec.json.encode(e["payload"])) <= 64_000 for e in events if "seq" in e)
        shown = [e for e in events if e["event"] == "workflow.tool.progress"]
        assert shown
        assert shown[0]["payload"]["k"] >= shown[0]["payload"]["n"] >= 1


async def test_long_arguments_are_attached_in_full(home: Path) -> None:
    content = "半\x01" * 50_000
    script = [
        Reply(calls=[plan()]),
        Reply(calls=[Call("write_file", {"path": "long.txt", "content": content})]),
        Reply(text="written"),
    ]
    async with open_agent(home, script) as here:
        made = await here.submit("write a lot")
        events = await here.end_of(made)
        sound(events)
        started = next(e for e in events if e["event"] == "workflow.tool.started")["payload"]
        assert len(msgspec.json.encode(started)) <= 64_000
        kept = await here.services.attachments.get(started["attachments"][0]["sha256"])
        assert msgspec.json.decode(kept)["content"] == content
        made = await here.submit(content[:100_000])
        events = await here.end_of(made)
        assert all(len(msgspec.json.encode(e["payload"])) <= 64_000 for e in events)


async def test_a_run_continues_when_long_texts_cannot_be_stored(home: Path) -> None:
    show = "for i in $(seq 1 20000); do echo line $i; done"
    script = [
        Reply(calls=[plan()]),
        Reply(calls=[Call("write_file", {"path": "long.txt", "content": "半\x01" * 50_000})]),
        Reply(calls=[Call("shell", {"command": show})]),
        Reply(text="done"),
    ]
    async with (
        s3_server(home.parent / "server") as server,
        open_agent(home, script, server.environ) as here,
    ):
        await server.stop()
        made = await here.submit("write and show a lot")
        events = await here.end_of(made)
        sound(events)
        payloads = [e["payload"] for e in events if e["event"].startswith("workflow.tool.")]
        assert not any(payload.get("attachments") for payload in payloads)
        assert "line 20000" in payloads[-1]["result"]
        assert events[-1]["payload"]["final_answer"] == "done"

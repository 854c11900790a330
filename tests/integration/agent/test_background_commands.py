"""Background commands through the real chain: engine, sandbox, HTTP."""

from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.ids import SessionId
from internal.agent.domain.principals import LOCAL_OWNER
from tests.support.agent_app import Core, open_agent
from tests.support.anthropic_server import Call, Reply
from tests.support.sandboxes import sandbox_params

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}


def background(command: str, **more: Any) -> Reply:
    return Reply(calls=[Call("shell", {"command": command, "background": True, **more})])


async def running(here: Core, session_id: SessionId) -> list[str]:
    found = await here.services.gateway.commands.list_all(session_id, LOCAL_OWNER)
    return [each.command for each in found if each.ended is None]


@pytest.mark.parametrize("provider", sandbox_params("native", "bubblewrap", "landlock"))
@pytest.mark.first_rows(1)
async def test_a_background_command_ends_with_its_run_unless_it_is_kept(
    home: Path, tmp_path: Path, provider: str
) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    reading = "until [ -s made ]; do read -rt 0.05 <> <(:); done; cat made"
    waits = Call("shell", {"command": reading})
    script = [
        background("echo served >made; exec sleep 600"),
        background("exec sleep 601", keep=True),
        Reply(calls=[waits]),
        Reply(text="first over"),
        Reply(text="second over"),
    ]
    environ = {**NO_GATES, "LARKSPUR_SANDBOX__PROVIDER": provider}
    async with open_agent(home, script, environ) as here:
        made = await here.submit("serve", workspace=str(workspace))
        events = await here.end_of(made)
        results = [e["payload"] for e in events if e["event"] == "workflow.tool.completed"]
        assert results[0]["metadata"]["background"].startswith("bg-")
        assert "served" in results[2]["result"]
        assert await running(here, made.session_id) == ["exec sleep 601"]
        again = await here.submit("more", made.session_id, workspace=str(workspace))
        await here.end_of(again)
        assert await running(here, made.session_id) == ["exec sleep 601"]
        await here.services.gateway.delete_session(made.session_id, LOCAL_OWNER)
        assert here.services.commands.of_session(made.session_id) == []


async def test_background_commands_end_with_a_stopped_run(home: Path, tmp_path: Path) -> None:
    script = [background("echo up; exec sleep 600"), Reply(hang=True)]
    async with open_agent(home, script, NO_GATES) as here:
        made = await here.submit("serve", workspace=str(tmp_path))
        await here.until(made.session_id, lambda each: each["event"] == "workflow.tool.completed")
        await here.model.until_asked(2)
        assert await running(here, made.session_id) == ["echo up; exec sleep 600"]
        await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web")
        await here.end_of(made)
        assert await running(here, made.session_id) == []


async def test_a_run_that_waits_keeps_its_commands_and_another_process_says_they_ended(
    home: Path, tmp_path: Path
) -> None:
    asks = Reply(calls=[Call("request_user", {"question": "Which colour?"})])
    async with open_agent(home, [background("exec sleep 600"), asks], NO_GATES) as here:
        made = await here.submit("serve", workspace=str(tmp_path))
        question = await here.asked(made)
        (command,) = here.services.commands.of_session(made.session_id)
        assert command.ended is None
    look = Reply(calls=[Call("shell_output", {"id": command.id})])
    async with open_agent(home, [look, Reply(text="over")], NO_GATES) as here:
        await here.answer(question["question_id"], "text", "red")
        events = await here.end_of(made)
        results = [e["payload"] for e in events if e["event"] == "workflow.tool.completed"]
        assert "when Larkspur stopped" in results[-1]["error"]

"""Gates through a real gateway: calls that were not run are shown, and no gate turns itself off."""

from pathlib import Path
from typing import Any

from internal.agent.domain.principals import LOCAL_OWNER
from tests.support.agent_app import open_agent, sound
from tests.support.anthropic_server import Call, Reply

WRITE = Reply(calls=[Call("write_file", {"path": "a.txt", "content": "x"})])
DONE = Reply(text="Done.")
STRICT = {"LARKSPUR_AGENT__GATES": "strict"}


def payloads(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [each["payload"] for each in events if each["event"] == f"workflow.{name}"]


async def test_a_run_whose_last_call_was_not_run_says_so(home: Path) -> None:
    async with open_agent(home, [WRITE, DONE]) as here:
        task = await here.submit("write it")
        events = await here.end_of(task)
        sound(events)
        (call,) = payloads(events, "tool.completed")
        assert call["metadata"] == {
            "not_run": "plan",
            "what": "write_file\npath: a.txt\ncontent: x",
            "subject": "a.txt",
        }
        assert call["error"] == "Not run: the agent had not made a plan."
        assert payloads(events, "result.final")[0]["calls_not_run"] == 1
        tree = await here.services.gateway.queries.task_tree(task.task_id, LOCAL_OWNER)
        assert tree.calls_not_run == 1


async def test_after_two_corrections_the_run_goes_on_with_a_plan_of_larkspur(home: Path) -> None:
    async with open_agent(home, [WRITE, WRITE, WRITE, DONE], STRICT) as here:
        task = await here.submit("write it", permission_mode="all")
        events = await here.end_of(task)
        sound(events)
        (plan,) = payloads(events, "plan.updated")
        assert (plan["made_by"], plan["goal"]) == ("larkspur", "write it")
        assert [step["description"] for step in plan["steps"]] == ["write it"]
        *missed, ran = payloads(events, "tool.completed")
        assert [call["metadata"]["not_run"] for call in missed] == ["plan", "plan"]
        assert "error" not in ran
        assert (home / "workspaces" / task.session_id / "a.txt").read_text() == "x"
        assert "calls_not_run" not in payloads(events, "result.final")[0]


async def test_a_reply_with_several_calls_tells_their_order(home: Path) -> None:
    calls = [
        Call("shell", {"command": "touch made"}),
        Call("read_file", {"path": "none.txt"}),
    ]
    async with open_agent(
        home, [Reply(calls=calls), DONE], {"LARKSPUR_AGENT__GATES": "off"}
    ) as here:
        task = await here.submit("look", deny=("shell",))
        events = await here.end_of(task)
        sound(events)
        reply, answer = payloads(events, "node.output.summary")
        ends = payloads(events, "tool.completed")
        assert sorted(reply["call_ids"]) == sorted(end["call_id"] for end in ends)
        names = {end["call_id"]: end["tool_name"] for end in ends}
        assert [names[call_id] for call_id in reply["call_ids"]] == ["shell", "read_file"]
        assert "call_ids" not in answer
        denied = ends[0]["metadata"]
        assert (denied["denied"], denied["subject"]) == (True, "touch made")

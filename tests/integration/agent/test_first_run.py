"""A run answers its task."""

from pathlib import Path

from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Reply


async def test_a_run_answers_its_task(tmp_path: Path) -> None:
    async with open_agent(tmp_path, [Reply(text="42")]) as agent:
        task = await agent.submit("what is 6*7?")
        events = await agent.end_of(task)
        assert events[-1]["payload"]["final_answer"] == "42"

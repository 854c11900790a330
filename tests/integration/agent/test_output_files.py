"""The folder output/, shared by file tools and commands, and the delivery of its files.

In a workspace of Larkspur and in a folder of a person, in each permission mode, isolated or not.
"""

from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.files.artifacts import CLOCK_TICK_NS
from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.artifacts import ArtifactFilter
from internal.agent.domain.principals import LOCAL_OWNER
from tests.support.agent_app import Core, open_agent
from tests.support.anthropic_server import Call, Reply, seen_in
from tests.support.sandboxes import sandbox_param

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}
TOOL = Call("write_file", {"path": "output/tool.md", "content": "by a tool\n"})
COMMAND = Call("shell", {"command": "cat output/tool.md; echo by a command > output/command.md"})
READ = Call("read_file", {"path": "./output/command.md"})
SCRIPT = [*(Reply(calls=[call]) for call in (TOOL, COMMAND, READ)), Reply("done")]


def wait_until_old(file: Path, probe: Path) -> None:
    """Wait until a run that begins now is later than a file by the clock of the file system."""
    while True:
        probe.touch()
        if probe.stat().st_ctime_ns - file.stat().st_ctime_ns > 2 * CLOCK_TICK_NS:
            return


async def approve_to_the_end(here: Core, made: Submitted) -> list[dict[str, Any]]:
    """Approve each question of a run; return the arguments of the calls that were asked about."""
    asked: list[dict[str, Any]] = []
    answered: set[str] = set()

    def stops(each: dict[str, Any]) -> bool:
        if each["event"].startswith("workflow.result."):
            return True
        payload = each["payload"]
        is_question = each["event"] == "workflow.question.asked"
        return is_question and payload["question_id"] not in answered

    while True:
        last = (await here.until(made.session_id, stops))[-1]
        if last["event"] != "workflow.question.asked":
            return asked
        asked.append(last["payload"])
        answered.add(last["payload"]["question_id"])
        await here.answer(last["payload"]["question_id"])


@pytest.mark.parametrize("place", ["session", "person"])
@pytest.mark.parametrize(
    ("provider", "mode"),
    [
        sandbox_param("native", "ask"),
        sandbox_param("landlock", "run"),
        sandbox_param("bubblewrap", "run"),
        sandbox_param("native", "edit"),
        sandbox_param("native", "all"),
        sandbox_param("landlock", "ask"),
        sandbox_param("landlock", "edit"),
        sandbox_param("landlock", "all"),
        sandbox_param("bubblewrap", "ask"),
    ],
)
@pytest.mark.first_rows(3)
async def test_tools_and_commands_share_the_folder_and_its_files_are_given(
    home: Path, tmp_path: Path, provider: str, mode: str, place: str
) -> None:
    folder = tmp_path / "project"
    (folder / "output").mkdir(parents=True)
    own = folder / "output" / "own.txt"
    own.write_text("there before\n")
    wait_until_old(own, tmp_path / "probe")
    options: dict[str, Any] = {"workspace": str(folder)} if place == "person" else {}
    environ = {**NO_GATES, "LARKSPUR_SANDBOX__PROVIDER": provider}
    async with open_agent(home, SCRIPT, environ) as here:
        made = await here.submit("work", permission_mode=mode, **options)
        asked = await approve_to_the_end(here, made)
        _, wrote, ran, read = (seen_in(each).last_result for each in here.model.requests)
        assert "created" in wrote
        assert "by a tool" in ran
        assert "by a command" in read
        page = await here.services.gateway.queries.artifacts(
            LOCAL_OWNER, ArtifactFilter(made.session_id)
        )
        assert sorted(each.name for each in page) == ["command.md", "tool.md"]
        changes = await here.services.gateway.changed_files.of_session(made.session_id, LOCAL_OWNER)
    of_person = place == "person"
    root = folder if of_person else home / "workspaces" / made.session_id
    assert (root / "output" / "tool.md").read_text() == "by a tool\n"
    assert (root / "output" / "command.md").read_text() == "by a command\n"
    # files of a person are changed only with their consent, files of the session without it
    assert sum("write_file" in str(each) for each in asked) == (of_person and mode == "ask")
    listed = {each.path for each in changes.changes}
    assert listed == ({"output/command.md", "output/tool.md"} if of_person else set())


async def test_a_folder_of_a_person_gives_only_what_the_run_changed(
    home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    (folder / "output").mkdir(parents=True)
    for name in ("kept.txt", "changed.txt"):
        (folder / "output" / name).write_text("before\n")
        wait_until_old(folder / "output" / name, tmp_path / "probe")
    calls = [Call("shell", {"command": f"echo {word} >> output/changed.txt"}) for word in "ab"]
    script = [*(Reply(calls=[call]) for call in calls), Reply("done")]
    async with open_agent(home, script, NO_GATES) as here:
        made = await here.submit("work", workspace=str(folder))
        await here.end_of(made)
        page = await here.services.gateway.queries.artifacts(
            LOCAL_OWNER, ArtifactFilter(made.session_id)
        )
        found = {(each.name, each.version) for each in page}
    assert found == {("changed.txt", 2)}

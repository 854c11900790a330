"""Files of the workspace that runs change with tools and commands, through the whole chain."""

from pathlib import Path

import pytest

from internal.agent.domain.errors import Conflict, NotFound
from internal.agent.domain.principals import LOCAL_OWNER
from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Call, Reply, Rules, When

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}
EVENT = "workflow.files.changed"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "project"
    made.mkdir()
    (made / "old.txt").write_text("one\ntwo\n")
    return made


async def test_files_of_tools_and_commands_are_listed_and_undone(home: Path, folder: Path) -> None:
    write = Call("write_file", {"path": "made.txt", "content": "by a tool\n"})
    command = Call("shell", {"command": "printf 'one\\n2\\n' > old.txt; touch by-command.txt"})
    look = Call("list_dir", {})
    rules = Rules(
        [
            Reply(text="Written.", when=When(last_user="work", results=2)),
            Reply(calls=[write, command], when=When(last_user="work")),
            Reply(text="Seen.", when=When(last_user="look", results=1)),
            Reply(calls=[look], when=When(last_user="look")),
        ]
    )
    async with open_agent(home, rules, NO_GATES) as here:
        made = await here.submit("work", workspace=str(folder))
        events = await here.end_of(made)
        changed = [each["payload"] for each in events if each["event"] == EVENT]
        assert [
            {each["path"]: (each["kind"], each["added"]) for each in one["files"]}
            for one in changed
        ] == [
            {
                "by-command.txt": ("created", 0),
                "made.txt": ("created", 1),
                "old.txt": ("changed", 1),
            }
        ]
        files = here.services.gateway.changed_files
        found = await files.of_session(made.session_id, LOCAL_OWNER, run_id=made.run_id)
        by_path = {each.path: each for each in found.changes}
        undone = await files.undo(made.session_id, by_path["old.txt"].id, LOCAL_OWNER, "web")
        assert undone.is_undone
        assert (folder / "old.txt").read_text() == "one\ntwo\n"
        (folder / "made.txt").write_text("by a person\n")
        with pytest.raises(Conflict, match="changed since"):
            await files.undo(made.session_id, by_path["made.txt"].id, LOCAL_OWNER, "web")
        # a run that only reads walks nothing
        records = home / "workspace-changes"
        before = {each: each.stat().st_mtime_ns for each in records.rglob("*")}
        looked = await here.submit("look", made.session_id, workspace=str(folder))
        await here.end_of(looked)
        assert EVENT not in [each["event"] for each in await here.durable(looked)]
        assert {each: each.stat().st_mtime_ns for each in records.rglob("*")} == before
        assert (await files.read(made.session_id, LOCAL_OWNER, "old.txt")) == b"one\ntwo\n"
        with pytest.raises(NotFound):
            await files.read(made.session_id, LOCAL_OWNER, "../outside.txt")

"""The recorder of changed files: the files that it reads before a call."""

from pathlib import Path

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Call, Reply

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}
WRITE = Call("write_file", {"path": "a.txt", "content": "after\n"})


def kept(home: Path) -> bytes:
    """Return all records of workspaces."""
    return b"".join(each.read_bytes() for each in (home / "workspace-changes").glob("*.sqlite*"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    for name in ("a.txt", "b.txt"):
        (made / name).write_text(f"the first words of {name}\n")
    return made


async def test_a_tool_that_names_its_file_reads_no_other_and_a_command_reads_all(
    home: Path, folder: Path
) -> None:
    command = Call("shell", {"command": "echo after > b.txt"})
    script = [Reply(calls=[WRITE]), Reply("done"), Reply(calls=[command]), Reply("done")]
    async with open_agent(home, script, NO_GATES) as here:
        made = await here.submit("work", workspace=str(folder))
        await here.end_of(made)
        assert b"first words of a.txt" in kept(home)
        assert b"first words of b.txt" not in kept(home)
        again = await here.submit("work", made.session_id, workspace=str(folder))
        await here.end_of(again)
        assert b"first words of b.txt" in kept(home)
        files = here.services.gateway.changed_files
        found = (await files.of_session(made.session_id, LOCAL_OWNER)).changes
        assert [(each.path, each.added, each.removed) for each in found] == [
            ("a.txt", 1, 1),
            ("b.txt", 1, 1),
        ]


async def test_a_path_through_a_link_reads_all(home: Path, folder: Path) -> None:
    (folder / "link").symlink_to(".")
    call = Call("write_file", {"path": "link/a.txt", "content": "after\n"})
    async with open_agent(home, [Reply(calls=[call]), Reply("done")], NO_GATES) as here:
        made = await here.submit("work", workspace=str(folder))
        await here.end_of(made)
        files = here.services.gateway.changed_files
        (change,) = (await files.of_session(made.session_id, LOCAL_OWNER)).changes
        assert (change.path, change.added, change.removed) == ("a.txt", 1, 1)

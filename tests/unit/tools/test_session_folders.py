"""The paths input/ and output/ are the folders of the session, in the workspace or outside it."""

from pathlib import Path

import pytest

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.attachments import FileFolders
from internal.agent.ports.tools import CallContext
from internal.tools.protected_paths import ProtectedPaths
from internal.tools.workspace import Workspace
from tests.support.tools import tool_box, unprotected

SESSION = SessionId("session-1")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    for name in ("input", "output"):
        (folder / "session-files" / SESSION / name).mkdir(parents=True)
    (folder / "token").write_text("secret")
    return folder


@pytest.fixture
def session_files(home: Path) -> Path:
    folder = home / "session-files" / SESSION
    (folder / "input" / "report.txt").write_text("sent by a person")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "output").mkdir(parents=True)
    (folder / "output" / "own.txt").write_text("of the project")
    return folder


@pytest.fixture
def protected(home: Path) -> ProtectedPaths:
    return ProtectedPaths(home, session_folders=[home / "session-files"])


@pytest.fixture
def workspace(project: Path, session_files: Path, protected: ProtectedPaths) -> Workspace:
    folders = FileFolders(str(session_files / "input"), str(session_files / "output"))
    return Workspace(str(project), protected, folders)


def read(workspace: Workspace, path: str) -> bytes:
    return workspace.read(workspace.parse(path)).content


def write(workspace: Workspace, path: str) -> None:
    workspace.write(workspace.parse(path), b"new")


def test_relative_paths_lead_to_the_folders_of_the_session(
    workspace: Workspace, session_files: Path, project: Path
) -> None:
    assert read(workspace, "input/report.txt") == b"sent by a person"
    write(workspace, "output/charts/a.txt")
    assert (session_files / "output" / "charts" / "a.txt").read_bytes() == b"new"
    assert not (project / "output" / "charts").exists()
    assert str(workspace.parse("output//charts/./a.txt")) == "output/charts/a.txt"


def test_absolute_paths_lead_where_they_say(
    workspace: Workspace, session_files: Path, project: Path
) -> None:
    assert str(workspace.parse(f"{session_files}/output/a.txt")) == "output/a.txt"
    assert str(workspace.parse(f"{project}/output/own.txt")) == "./output/own.txt"
    assert read(workspace, f"{project}/output/own.txt") == b"of the project"


def test_the_workspaces_own_folder_is_named_with_a_dot(workspace: Workspace) -> None:
    assert read(workspace, "./output/own.txt") == b"of the project"
    with pytest.raises(ToolError, match=r"not a file of the session.*its own, \./output/own\.txt"):
        read(workspace, "output/own.txt")
    write(workspace, "./output/more.txt")
    assert read(workspace, "./output/more.txt") == b"new"


@pytest.mark.parametrize("name", ["report.txt", "new.txt", "deep/new.txt"])
def test_what_people_sent_is_not_changed(
    workspace: Workspace, session_files: Path, name: str
) -> None:
    with pytest.raises(ToolError, match="cannot be changed: write to output/"):
        write(workspace, f"input/{name}")
    assert sorted(path.name for path in (session_files / "input").iterdir()) == ["report.txt"]


@pytest.mark.parametrize("path", ["input/a.txt", "./input/a.txt", "link/a.txt", "INPUT/../input/a"])
def test_input_in_a_workspace_of_the_session_is_not_changed_either(
    tmp_path: Path, path: str
) -> None:
    root = tmp_path / "workspace"
    (root / "input").mkdir(parents=True)
    (root / "link").symlink_to("input")
    folders = FileFolders(f"{root}/input", f"{root}/output")
    workspace = Workspace(str(root), unprotected(root), folders)
    with pytest.raises(ToolError, match=r"cannot be changed|contains '\.\.'"):
        write(workspace, path)
    assert list((root / "input").iterdir()) == []
    write(workspace, "output/a.txt")
    assert (root / "output" / "a.txt").is_file()


@pytest.mark.parametrize("place", ["input", "output"])
def test_no_link_leads_out_of_a_session_folder(
    workspace: Workspace, session_files: Path, home: Path, place: str
) -> None:
    (session_files / place / "link").symlink_to(home / "token")
    (session_files / place / "up").symlink_to("..")
    for path in (f"{place}/link", f"{place}/up/input/report.txt"):
        with pytest.raises(ToolError, match="leads outside"):
            read(workspace, path)


def test_a_session_folder_that_became_a_link_is_not_followed(
    workspace: Workspace, session_files: Path, home: Path
) -> None:
    (session_files / "output").rmdir()
    (session_files / "output").symlink_to(home)
    with pytest.raises(ToolError, match="cannot be opened"):
        read(workspace, "output/token")


def test_files_of_another_session_and_of_larkspur_stay_protected(
    workspace: Workspace, session_files: Path, project: Path, home: Path
) -> None:
    (project / "files").symlink_to(session_files.parent)
    for path in ("files/session-1/input/report.txt", f"{home}/token"):
        with pytest.raises(ToolError, match="outside"):
            read(workspace, path)


async def test_every_file_tool_knows_the_folders(
    workspace: Workspace, session_files: Path, project: Path, protected: ProtectedPaths
) -> None:
    assert workspace.folders is not None
    box = tool_box(project, protected=protected, folders=lambda *_: workspace.folders)
    context = CallContext(SESSION, RunId("run-1"), "call-1", str(project), print)

    async def run(tool: str, **arguments: object) -> str:
        return (await box.run(context, tool, arguments)).text

    assert await run("read_file", path="input/report.txt") == "sent by a person"
    assert "created" in await run("write_file", path="output/a.md", content="one\n")
    edit = {"old_string": "one", "new_string": "two"}
    assert "changed" in await run("edit_file", path="output/a.md", **edit)
    assert await run("list_dir", path="output") == "a.md  4 bytes"
    listing = await run("list_dir")
    assert "[input/ and output/ are the folders of the session; ./output/ belongs to" in listing
    assert await run("search_files", pattern="sent", path="input") == (
        "input/report.txt:1: sent by a person"
    )
    assert "./output/own.txt:1: of the project" in await run(
        "search_files", pattern="project", path="./output"
    )
    command = 'cat "$LARKSPUR_INPUT_DIR/report.txt" > "$LARKSPUR_OUTPUT_DIR/copy.txt"'
    await run("shell", command=command)
    assert (session_files / "output" / "copy.txt").read_text() == "sent by a person"

"""No tool opens a file of Larkspur itself, under whatever name it is reached."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.tools import CallContext
from internal.tools.protected_paths import ProtectedPaths
from internal.tools.registry import ToolBox
from internal.tools.workspace import Workspace
from tests.support.tools import tool_box

KEY = "sk-canary-7f3a"
REFUSED = "belongs to Larkspur itself: no tool may open it"
NAMESPACES = ("unshare", "--user", "--map-root-user", "--mount")
Call = Callable[..., Any]


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A person's home directory, with that of Larkspur and a settings file elsewhere."""
    files = {
        ".larkspur/config.yaml": f"llm: {{api_key: {KEY}}}\n",
        ".larkspur/token": KEY,
        ".larkspur/attachments/ab/abcd": KEY,
        ".larkspur/workspaces/session-1/mine.txt": "mine\n",
        ".larkspur/workspaces/session-2/other.txt": f"{KEY}\n",
        ".larkspur/session-homes/session-1/.cache/module.py": "cached\n",
        "project/a.txt": "text\n",
        "project/settings.yaml": f"llm: {{api_key: {KEY}}}\n",
        "data/larkspur.db": KEY,
        "data/notes.txt": "note\n",
    }
    for name, content in files.items():
        path = tmp_path / "user" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path / "user"


@pytest.fixture
def protected(user: Path) -> ProtectedPaths:
    home = user / ".larkspur"
    return ProtectedPaths(
        home,
        files=[
            user / "project" / "settings.yaml",
            *(user / "data" / f"larkspur.db{suffix}" for suffix in ("", "-wal", "-journal")),
        ],
        session_folders=[home / "workspaces", home / "session-homes"],
    )


@pytest.fixture(params=[pytest.param("ripgrep", marks=pytest.mark.needs("ripgrep")), "scan"])
def box(request: pytest.FixtureRequest, user: Path, protected: ProtectedPaths) -> ToolBox:
    box = tool_box(user, protected=protected)
    box._ripgrep = shutil.which("rg") if request.param == "ripgrep" else None
    return box


@pytest.fixture
def call(box: ToolBox) -> Call:
    async def run(root: Path, name: str, **arguments: object) -> str:
        context = CallContext(SessionId("s"), RunId("r"), "c", str(root), lambda _: None)
        return (await box.run(context, name, arguments)).text

    return run


NAMES: dict[str, Callable[[Path], str]] = {
    "relative": lambda _: ".larkspur/config.yaml",
    "absolute": lambda user: f"{user}/.larkspur/config.yaml",
    "spelled in another way": lambda _: "./.larkspur//./config.yaml",
    "an attachment": lambda _: ".larkspur/attachments/ab/abcd",
    "another session": lambda _: ".larkspur/workspaces/session-2/other.txt",
    "a link to the file": lambda user: link(user / "link", ".larkspur/config.yaml"),
    "a link to a link": lambda user: link(user / "x", link(user / "y", ".larkspur/token")),
    "a link to the folder": lambda user: link(user / "z", ".larkspur") + "/config.yaml",
    "a link to a folder in it": lambda user: link(user / "w", ".larkspur/attachments/ab") + "/abcd",
    "a hard link": lambda user: hard_link(user / "hard", user / ".larkspur/config.yaml"),
    "a hard link to an attachment": lambda user: hard_link(
        user / "project/hard", user / ".larkspur/attachments/ab/abcd"
    ),
    "the settings elsewhere": lambda _: "project/settings.yaml",
    "a hard link to the settings": lambda user: hard_link(
        user / "hard", user / "project/settings.yaml"
    ),
    "the database elsewhere": lambda _: "data/larkspur.db",
}


def link(path: Path, target: str) -> str:
    path.symlink_to(target)
    return path.name


def hard_link(path: Path, target: Path) -> str:
    path.hardlink_to(target)
    return str(path)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
async def test_every_tool_refuses_a_file_of_larkspur_under_any_name(
    call: Call, user: Path, name: Callable[[Path], str]
) -> None:
    path = name(user)
    before = state(user)
    with pytest.raises(ToolError, match=REFUSED):
        await call(user, "read_file", path=path)
    with pytest.raises(ToolError, match=REFUSED):
        await call(user, "search_files", pattern="canary", path=path)
    for tool, arguments in {
        "write_file": {"content": "tools: {allow: [shell]}"},
        "edit_file": {"old_string": KEY, "new_string": "x"},
    }.items():
        with pytest.raises(ToolError, match=f"{REFUSED}|is a symbolic link"):
            await call(user, tool, path=path, **arguments)
    assert state(user) == before


def state(folder: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


def names(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


NEW = {
    "a new file": ".larkspur/rules.yaml",
    "a new folder": ".larkspur/a/b/c.txt",
    "through a link": "home/config.yaml",
    "a file that SQLite reads": "data/larkspur.db-journal",
    "in other letter case": "data/LARKSPUR.DB-wal",
}


@pytest.mark.parametrize("path", NEW.values(), ids=NEW)
async def test_no_tool_adds_a_file_to_those_of_larkspur(call: Call, user: Path, path: str) -> None:
    (user / "home").symlink_to(".larkspur")
    before = names(user)
    with pytest.raises(ToolError, match=REFUSED):
        await call(user, "write_file", path=path, content="x")
    assert names(user) == before


async def test_a_listing_shows_nothing_of_the_home_folder(call: Call, user: Path) -> None:
    (user / "home").symlink_to(".larkspur")
    assert ".larkspur/" in await call(user, "list_dir")
    for path in (".larkspur", ".larkspur/attachments", "home", f"{user}/.larkspur"):
        with pytest.raises(ToolError, match=REFUSED):
            await call(user, "list_dir", path=path)


async def test_a_search_from_above_leaves_out_the_files_of_larkspur(call: Call, user: Path) -> None:
    (user / "project" / "hard").hardlink_to(user / ".larkspur/attachments/ab/abcd")
    (user / "project" / "mine.txt").write_text("canary, mine\n")
    for root in (user, user.parent):
        context = "user/" if root == user.parent else ""
        assert await call(root, "search_files", pattern="canary") == (
            f"{context}project/mine.txt:1: canary, mine"
        )
    assert await call(user, "search_files", pattern="sk-") == "[nothing was found]"
    for path in (".larkspur", ".larkspur/attachments"):
        with pytest.raises(ToolError, match=REFUSED):
            await call(user, "search_files", pattern="canary", path=path)


async def test_the_home_folder_and_what_is_in_it_is_no_workspace(call: Call, user: Path) -> None:
    home = user / ".larkspur"
    for root in (home, home / "attachments", home / "workspaces", home / "attachments" / "ab"):
        for name in ("list_dir", "search_files"):
            more = {"pattern": "canary"} if name == "search_files" else {}
            with pytest.raises(ToolError, match=REFUSED):
                await call(root, name, **more)
        with pytest.raises(ToolError, match=REFUSED):
            await call(root, "write_file", path="a", content="x")


async def test_the_folder_of_a_session_is_open_to_its_tools(call: Call, user: Path) -> None:
    root = user / ".larkspur" / "workspaces" / "session-1"
    (root / "two-names.txt").hardlink_to(root / "mine.txt")
    cached = user / ".larkspur" / "session-homes" / "session-1" / ".cache" / "module.py"
    (root / "module.py").hardlink_to(cached)  # as uv does
    assert await call(root, "read_file", path="mine.txt") == "mine"
    assert await call(root, "read_file", path="two-names.txt") == "mine"
    assert await call(root, "read_file", path="module.py") == "cached"
    assert "mine.txt:1: mine" in await call(root, "search_files", pattern="mine")
    assert "mine.txt" in await call(root, "list_dir")
    await call(root, "write_file", path="a/b.txt", content="x")


async def test_other_files_beside_those_of_larkspur_stay_open(call: Call, user: Path) -> None:
    assert await call(user, "read_file", path="data/notes.txt") == "note"
    await call(user, "write_file", path="data/notes.txt", content="other\n")
    (user / "project" / "two").hardlink_to(user / "project" / "a.txt")
    assert await call(user, "read_file", path="project/two") == "text"


async def test_settings_that_an_editor_replaced_stay_protected(call: Call, user: Path) -> None:
    """The file has another inode now, and the home folder reaches it through a link."""
    home, dotfiles = user / ".larkspur", user / "dotfiles"
    dotfiles.mkdir()
    (home / "config.yaml").rename(dotfiles / "larkspur.yaml")
    (home / "config.yaml").symlink_to(dotfiles / "larkspur.yaml")
    for number in range(3):
        (dotfiles / "draft").write_text(f"{KEY} {number}")
        (dotfiles / "draft").replace(dotfiles / "larkspur.yaml")
        with pytest.raises(ToolError, match=REFUSED):
            await call(user, "read_file", path="dotfiles/larkspur.yaml")


@pytest.mark.needs("mounts")
@pytest.mark.parametrize("source", [".larkspur", ".larkspur/attachments", ".larkspur/token"])
def test_a_second_mount_leads_to_the_same_refusal(
    user: Path, protected: ProtectedPaths, source: str
) -> None:
    target = user / "project" / "mounted"
    target.mkdir() if (user / source).is_dir() else target.touch()
    script = (
        "import sys; from pathlib import Path\n"
        "from internal.agent.domain.errors import ToolError\n"
        "from internal.tools.protected_paths import ProtectedPaths\n"
        "from internal.tools.workspace import Workspace\n"
        "workspace = Workspace(sys.argv[1], ProtectedPaths(Path(sys.argv[2])))\n"
        "try:\n"
        "    with workspace.open(workspace.parse('mounted')): print('opened')\n"
        "except ToolError as error: print(error)\n"
    )
    command = 'mount --bind "$1" "$2" && exec "$3" -c "$4" "$5" "$6"'
    done = subprocess.run(
        [
            *(*NAMESPACES, "sh", "-c", command, "sh", user / source, target),
            *(sys.executable, script, user / "project", user / ".larkspur"),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    assert REFUSED in done.stdout


@pytest.mark.parametrize("name", ["docs/pre-commit", "docs/deep/x", "tree/hooks/x", "a/.GIT/x"])
def test_no_link_leads_a_change_into_a_git_folder(
    user: Path, protected: ProtectedPaths, name: str
) -> None:
    root = user / "project"
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / "docs").symlink_to(".git/hooks")
    (root / "tree").symlink_to(".git")
    before = names(root)
    workspace = Workspace(str(root), protected)
    with pytest.raises(ToolError, match="belongs to git"):
        workspace.write(workspace.parse(name), b"x")
    assert names(root) == before


def test_the_git_file_of_a_worktree_is_not_replaced(user: Path, protected: ProtectedPaths) -> None:
    (user / "project" / ".git").write_text("gitdir: /elsewhere\n")
    workspace = Workspace(str(user / "project"), protected)
    with pytest.raises(ToolError, match="belongs to git"):
        workspace.write(workspace.parse(".git"), b"gitdir: evil\n")


def test_a_folder_that_becomes_a_link_to_the_home_is_refused(
    user: Path, protected: ProtectedPaths
) -> None:
    """The opened file counts, not the names at the time of a check."""
    workspace = Workspace(str(user), protected)
    (user / "swap").mkdir()
    assert not workspace.is_protected(str(user / "swap"))
    (user / "swap").rmdir()
    (user / "swap").symlink_to(".larkspur")
    with pytest.raises(ToolError, match=REFUSED):
        workspace.read(workspace.parse("swap/config.yaml"))

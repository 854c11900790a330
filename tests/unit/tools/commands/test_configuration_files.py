"""Files that agents and programs trust later, compared around a command."""

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.permissions.configuration_names import CONFIGURATION_NAMES
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import Allowed, ApprovalNeeded, Policy, evaluate_call
from internal.tools.commands.configuration_files import (
    MAX_FILES,
    MAX_REPORTED,
    ConfigurationSnapshot,
    configuration_metadata,
    describe_changes,
)
from internal.tools.commands.configuration_search import (
    MAX_FOLDERS,
    ConfigurationSearch,
    FoundConfiguration,
)
from internal.tools.filesystem import write_file
from tests.support.git_repository import git, make_repository


def changes(workspace: Path, change: Callable[[], object]) -> list[str]:
    before = ConfigurationSnapshot([str(workspace)], ConfigurationSearch())
    change()
    return before.report()


def write(path: Path, text: str = "x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    "name",
    [
        "AGENTS.md",
        "CLAUDE.md",
        "sub/deep/AGENTS.md",
        "sub/.vscode/tasks.json",
        ".github/workflows/ci.yml",
        ".envrc",
        ".mcp.json",
        ".git/hooks/pre-commit",
        ".git/config",
        ".git/commondir",
        ".git/config.worktree",
        ".git/worktrees/x/config.worktree",
        ".larkspur/skills/deep/SKILL.md",
    ],
)
def test_a_new_and_a_changed_file_are_named(tmp_path: Path, name: str) -> None:
    (tmp_path / ".git").mkdir()
    path = tmp_path / name
    text = "[core]\n\tfsmonitor = ./run\n"
    assert changes(tmp_path, lambda: write(path, text)) == [name]
    assert changes(tmp_path, lambda: None) == []
    assert changes(tmp_path, lambda: write(path, f"{text}\tpager = ./x\n")) == [name]
    assert changes(tmp_path, lambda: path.chmod(0o700)) == [name]
    assert changes(tmp_path, path.unlink) == []


@pytest.mark.parametrize("name", CONFIGURATION_NAMES)
def test_configuration_is_asked_about_by_file_tools_and_named_for_commands(
    tmp_path: Path, name: str
) -> None:
    for path in (name, f"a/b/{name}", f"a/{name}/c/d"):
        place = tmp_path / "-".join(path.split("/"))
        place.mkdir()
        call = {"path": path, "content": "x"}
        verdict = evaluate_call(Policy(mode=Mode.RUN), write_file.spec, call, isolated=True)
        assert isinstance(verdict, ApprovalNeeded)
        assert changes(place, partial(write, place / path)) == [path]
    moved = tmp_path / "moved"
    write(moved / "old" / name)
    assert changes(moved, lambda: (moved / "old").rename(moved / "new")) == [f"new/{name}"]


@pytest.mark.parametrize("name", ["src/agents.txt", "github/workflows/a", "vscode/x", ".github/x"])
def test_other_files_are_neither_asked_about_nor_named(tmp_path: Path, name: str) -> None:
    call = {"path": name, "content": "x"}
    policy = Policy(mode=Mode.RUN)
    assert evaluate_call(policy, write_file.spec, call, isolated=True) == Allowed()
    assert changes(tmp_path, lambda: write(tmp_path / name)) == []


def test_a_file_with_the_same_size_and_time_is_different(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_text("one")
    before, times = ConfigurationSnapshot([str(tmp_path)], ConfigurationSearch()), path.stat()
    path.write_text("two")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert before.report() == ["AGENTS.md"]


def test_a_new_repository_is_named_and_what_git_itself_writes_is_not(tmp_path: Path) -> None:
    def work() -> None:
        write(tmp_path / "src" / "agents.txt")
        for arguments in (
            ("init", "--quiet"),
            ("config", "user.name", "Lin"),
            ("remote", "add", "origin", "https://example.com/a.git"),
            ("config", "branch.main.remote", "origin"),
            ("config", "branch.main.merge", "refs/heads/main"),
        ):
            subprocess.run(["git", "-C", tmp_path, *arguments], check=True)

    assert changes(tmp_path, work) == [".git"]
    assert (tmp_path / ".git" / "hooks").is_dir()


@pytest.mark.parametrize(
    "config",
    [
        "[core]\n\thooksPath = hooks\n",
        "[alias]\n\tst = !sh -c x\n",
        "[core] fsmonitor = ./x\n",
        '[remote "origin"]\n\turl = ext::sh -c x\n',
        '[branch "main"]\n\tremote = ext::sh -c x\n',
        '[include]\n\tpath = "x"\n',
        "[core]\n\tbare = false\\\n\tpager = x\n",
        '[filter "x"]\n\tclean = ./x\n',
        "x" * 70_000,
    ],
)
def test_settings_of_git_that_name_programs_are_named(tmp_path: Path, config: str) -> None:
    (tmp_path / ".git").mkdir()
    assert changes(tmp_path, lambda: write(tmp_path / ".git" / "config", config)) == [".git/config"]


def test_links_pipes_and_folders_in_the_place_of_files(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    for folder in (workspace / ".git" / "hooks", outside):
        folder.mkdir(parents=True)
    (outside / "x").write_text("x")
    assert changes(workspace, lambda: (workspace / "AGENTS.md").symlink_to(outside / "x")) == [
        "AGENTS.md"
    ]
    assert changes(workspace, lambda: (outside / "x").write_text("longer")) == []
    assert changes(workspace, lambda: os.mkfifo(workspace / ".git" / "config")) == [".git/config"]
    (workspace / ".git" / "config").unlink()
    assert changes(workspace, lambda: write(workspace / ".mcp.json" / "x")) == [".mcp.json/x"]

    def replace_git() -> None:
        (workspace / ".git").rename(workspace / "moved")
        (workspace / ".git").write_text("gitdir: moved")

    assert changes(workspace, replace_git) == [".git"]
    assert changes(workspace, lambda: (workspace / ".git").write_text("gitdir: other")) == [".git"]


def test_names_are_shown_safely_and_are_bounded(tmp_path: Path) -> None:
    hooks = tmp_path / ".git" / "hooks"
    hooks.mkdir(parents=True)
    assert changes(tmp_path, lambda: write(hooks / "a\n\u202eb")) == [".git/hooks/a\\n\\u202eb"]

    def many() -> None:
        for number in range(2 * MAX_FILES):
            (hooks / f"hook-{number}").touch()

    found = changes(tmp_path, many)
    assert MAX_REPORTED < len(found) <= MAX_FILES + 1  # with their folder
    assert len(configuration_metadata(found)["configuration"]) == MAX_REPORTED
    assert f"and {len(found) - MAX_REPORTED} more." in describe_changes(found)
    assert (configuration_metadata([]), describe_changes([])) == ({}, "")


@pytest.mark.parametrize("crowd", ["samples", "hooks", "folders"])
def test_no_crowd_of_files_hides_a_new_one(tmp_path: Path, crowd: str) -> None:
    hooks = tmp_path / ".git" / "hooks"
    hooks.mkdir(parents=True)
    for number in range(2 * MAX_FILES):
        match crowd:
            case "samples":
                (hooks / f"a{number}.sample").touch()
            case "folders":
                (hooks / f"a{number}").mkdir()
            case _:
                (hooks / f"a{number}").touch()

    def work() -> None:
        (tmp_path / "AGENTS.md").touch()
        (hooks / "pre-commit").touch()

    found = changes(tmp_path, work)
    assert "AGENTS.md" in found
    assert any(one.startswith(".git/hooks") for one in found)


def test_repositories_are_named_wherever_they_are(tmp_path: Path) -> None:
    workspace, deep = tmp_path / "workspace", "a/" * 8
    make_repository(workspace, a_txt="x")
    make_repository(tmp_path / "elsewhere", a_txt="x")

    def work() -> None:
        (workspace / deep).mkdir(parents=True)
        git(workspace, "init", "--quiet", f"{deep}nested")
        git(workspace / deep / "nested", "config", "core.fsmonitor", "./run")
        git(workspace, "init", "--quiet", "--bare", "node_modules/bare.git")
        (workspace / "node_modules" / "AGENTS.md").touch()
        write(workspace / "file" / ".git", "gitdir: ../../elsewhere/.git")
        (workspace / "link").mkdir()
        (workspace / "link" / ".git").symlink_to(tmp_path / "elsewhere" / ".git")
        (workspace / "outside").symlink_to(tmp_path / "elsewhere")

    assert sorted(changes(workspace, work)) == [
        f"{deep}nested/.git",
        f"{deep}nested/.git/config",
        "file/.git",
        "link/.git",
        "node_modules/bare.git/HEAD",
        "node_modules/bare.git/config",
    ]
    assert changes(workspace, lambda: (workspace / "file").rename(workspace / "other")) == [
        "other/.git"
    ]


def test_the_repository_of_a_submodule_is_named(tmp_path: Path) -> None:
    workspace = make_repository(tmp_path / "workspace", a_txt="x")
    other = make_repository(tmp_path / "other", a_txt="x")
    allowed = ("-c", "protocol.file.allow=always")
    git(workspace, *allowed, "submodule", "--quiet", "add", str(other), "sub")
    hooks = workspace / ".git" / "modules" / "sub" / "hooks"
    assert changes(workspace, lambda: write(hooks / "post-checkout")) == [
        ".git/modules/sub/hooks/post-checkout"
    ]


def test_a_crowd_of_folders_hides_no_repository_that_was_known_or_is_staged(tmp_path: Path) -> None:
    workspace = make_repository(tmp_path / "workspace", a_txt="x")
    nested, staged = workspace / "z" / "z", workspace / "y" / "y" / "y"
    nested.parent.mkdir()
    make_repository(nested, a_txt="x")
    search = ConfigurationSearch()
    before = ConfigurationSnapshot([str(workspace)], search)
    for number in range(MAX_FOLDERS):
        (workspace / f"a{number}").mkdir()
    git(nested, "config", "core.fsmonitor", "./run")
    staged.parent.mkdir(parents=True)
    make_repository(staged, a_txt="x")
    git(workspace, "add", "y")
    named = before.report()
    assert named[:2] == ["z/z/.git/config", "y/y/y/.git"]
    assert named[-1].endswith("/…")  # the first folder that was not searched


def test_a_folder_is_read_again_only_if_it_changed(tmp_path: Path) -> None:
    search = ConfigurationSearch()
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert search.search(str(tmp_path)) == FoundConfiguration()
    (tmp_path / "a" / "b" / ".git").mkdir()  # in the same tick of the clock
    assert search.search(str(tmp_path)).repositories == ("a/b/.git",)
    old = tmp_path / "old"
    old.mkdir()
    (tmp_path / "a").rename(old / "a")
    (tmp_path / "a").symlink_to(old / "a")
    assert search.search(str(tmp_path)).repositories == ("old/a/b/.git",)
    assert search.search(str(tmp_path / "missing")) == FoundConfiguration()


def test_what_makes_a_folder_a_bare_repository_is_named(tmp_path: Path) -> None:
    assert changes(tmp_path, lambda: write(tmp_path / "config", "[core]")) == []

    def work() -> None:
        for name in ("HEAD", "objects/x", "refs/x", "hooks/post-checkout"):
            write(tmp_path / name)

    assert changes(tmp_path, work) == ["HEAD", "config", "hooks/post-checkout"]
    assert changes(tmp_path, lambda: write(tmp_path / "config", "[core] x")) == ["config"]


def test_names_of_other_folders_are_absolute(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
    before = ConfigurationSnapshot([str(first), str(second)], ConfigurationSearch())
    for folder in (first, second):
        (folder / "AGENTS.md").touch()
    assert before.report() == ["AGENTS.md", f"{second}/AGENTS.md"]
    assert ConfigurationSnapshot([str(tmp_path / "missing")], ConfigurationSearch()).report() == []

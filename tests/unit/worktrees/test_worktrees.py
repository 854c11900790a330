"""Worktrees with real git, of repositories and with agents that are hostile."""

import os
from pathlib import Path

import pytest

from internal.agent.domain.errors import Conflict, InvalidRequest
from internal.agent.ports.workspaces import WorktreeChanges
from internal.worktrees import worktrees as module
from internal.worktrees.worktrees import GitWorktrees
from tests.support.git_repository import git, make_repository

BRANCH = "larkspur/12345678"
MARK = "#!/bin/sh\ntouch {}\ncat\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    texts = {"a_txt": "one\ntwo\nthree\n", "gone_txt": "x\n", "_gitignore": "build/\n"}
    return make_repository(tmp_path / "project", **texts)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "worktrees" / "session-1.task-12345678"


def make(repository: Path, folder: Path) -> GitWorktrees:
    worktrees = GitWorktrees()
    worktrees.create(str(repository), str(folder))
    return worktrees


def collect(worktrees: GitWorktrees, folder: Path) -> WorktreeChanges:
    changes = worktrees.collect(str(folder))
    assert changes is not None
    return changes


def test_a_worktree_has_the_newest_commit_and_nothing_else(repository: Path, folder: Path) -> None:
    (repository / "a.txt").write_text("not committed\n")
    (repository / "new.txt").write_text("not committed\n")
    head = git(repository, "rev-parse", "HEAD")
    assert GitWorktrees().describe(str(repository)) == (
        f"The worktree starts at commit {head[:10]} (HEAD); uncommitted changes are not in it."
    )
    make(repository, folder)
    assert (folder / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert not (folder / "new.txt").exists()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert git(folder, "status", "--porcelain", "--branch") == f"## {BRANCH}"
    assert git(folder, "log", "--format=%s") == "First"
    assert git(repository, "branch", "--format=%(refname:short)") == "main"


def test_what_was_changed_becomes_a_branch_and_a_patch(repository: Path, folder: Path) -> None:
    worktrees = make(repository, folder)
    (folder / "a.txt").write_text("one\n2\nthree\n")
    git(folder, "commit", "--quiet", "--all", "--message", "By the agent")
    (folder / "gone.txt").unlink()
    (folder / "new.bin").write_bytes(bytes(range(256)))
    (folder / "build").mkdir()
    (folder / "build" / "ignored").write_text("x")
    changes = collect(worktrees, folder)
    assert (changes.branch, changes.paths) == (BRANCH, ("a.txt", "gone.txt", "new.bin"))
    assert git(repository, "rev-parse", BRANCH) == changes.commit
    assert git(repository, "log", "--format=%s %an", BRANCH) == (
        "Changes of task-12345678 Larkspur\nFirst Ada"
    )
    assert changes.patch.startswith(b"task-12345678 on the branch larkspur/12345678, from commit ")
    assert b"-two\n+2\n" in changes.patch
    assert git(repository, "status", "--porcelain") == ""
    assert (repository / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_a_worktree_without_changes_makes_no_branch(repository: Path, folder: Path) -> None:
    worktrees = make(repository, folder)
    assert worktrees.collect(str(folder)) is None
    assert git(repository, "branch", "--list", "larkspur/*") == ""


def test_creation_and_collection_can_be_repeated(repository: Path, folder: Path) -> None:
    new = Path(f"{folder}.new")  # of a process that was killed
    (new / "half").mkdir(parents=True)
    worktrees = make(repository, folder)
    assert not (folder / "half").exists()
    (folder / "a.txt").write_text("changed\n")
    make(repository, folder)
    assert (folder / "a.txt").read_text() == "changed\n"
    first = collect(worktrees, folder)
    (folder / "b.txt").write_text("more\n")
    second = collect(worktrees, folder)
    assert second.paths == ("a.txt", "b.txt")
    assert git(repository, "rev-parse", BRANCH) == second.commit != first.commit
    assert git(repository, "rev-parse", f"{BRANCH}^") == git(repository, "rev-parse", "main")


def test_a_branch_that_a_person_changed_stays(repository: Path, folder: Path) -> None:
    worktrees = make(repository, folder)
    (folder / "a.txt").write_text("changed\n")
    collect(worktrees, folder)
    git(repository, "checkout", "--quiet", BRANCH)
    worktrees.release(str(folder))
    assert git(repository, "branch", "--list", BRANCH) == f"* {BRANCH}"
    assert not Path(f"{folder}.json").exists()
    git(repository, "checkout", "--quiet", "main")


def test_a_branch_with_a_commit_of_a_person_is_not_replaced(repository: Path, folder: Path) -> None:
    worktrees = make(repository, folder)
    git(repository, "checkout", "--quiet", "-b", BRANCH)
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "Mine")
    mine = git(repository, "rev-parse", "HEAD")
    (folder / "a.txt").write_text("changed\n")
    with pytest.raises(Conflict, match="was changed by somebody else"):
        worktrees.collect(str(folder))
    git(repository, "checkout", "--quiet", "main")
    worktrees.release(str(folder))
    assert git(repository, "rev-parse", BRANCH) == mine


def test_release_removes_the_branch(repository: Path, folder: Path) -> None:
    worktrees = make(repository, folder)
    (folder / "a.txt").write_text("changed\n")
    collect(worktrees, folder)
    worktrees.release(str(folder))
    assert git(repository, "branch", "--list", "larkspur/*") == ""
    assert [entry.name for entry in folder.parent.iterdir()] == [folder.name]


def test_a_patch_changes_the_files_of_the_folder(repository: Path, folder: Path) -> None:
    worktrees = make(repository, folder)
    (folder / "a.txt").write_text("one\ntwo\nthree\nfour\n")
    (folder / "new.bin").write_bytes(bytes(range(256)))
    (folder / "gone.txt").unlink()
    (folder / "run.sh").write_text("true\n")
    (folder / "run.sh").chmod(0o755)
    changes = collect(worktrees, folder)
    (repository / "mine.txt").write_text("uncommitted\n")
    index = (repository / ".git" / "index").read_bytes()
    assert set(worktrees.check(str(repository), changes.patch)) == set(changes.paths)
    assert (repository / "gone.txt").exists()
    worktrees.apply(str(repository), changes.patch)
    assert (repository / "a.txt").read_text() == "one\ntwo\nthree\nfour\n"
    assert (repository / "new.bin").read_bytes() == bytes(range(256))
    assert not (repository / "gone.txt").exists()
    assert (repository / "run.sh").stat().st_mode & 0o100
    assert (repository / "mine.txt").read_text() == "uncommitted\n"
    assert (repository / ".git" / "index").read_bytes() == index
    with pytest.raises(Conflict, match=r"are in .* already"):
        worktrees.apply(str(repository), changes.patch)


def test_a_patch_that_does_not_fit_changes_nothing(repository: Path, folder: Path) -> None:
    worktrees = make(repository, folder)
    (folder / "a.txt").write_text("one\n2\nthree\n")
    (folder / "gone.txt").unlink()
    changes = collect(worktrees, folder)
    (repository / "a.txt").write_text("one\nTWO\nthree\n")
    for work in (worktrees.check, worktrees.apply):
        with pytest.raises(Conflict, match=r"Nothing was changed: .* a\.txt"):
            work(str(repository), changes.patch)
    assert (repository / "gone.txt").exists()
    assert (repository / "a.txt").read_text() == "one\nTWO\nthree\n"


@pytest.mark.parametrize("target", ["../outside.txt", ".git/hooks/pre-commit", "link/x.txt"])
def test_a_patch_changes_nothing_outside(repository: Path, tmp_path: Path, target: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (repository / "link").symlink_to(tmp_path / "elsewhere")
    patch = (
        f"diff --git a/{target} b/{target}\nnew file mode 100755\n--- /dev/null\n+++ b/{target}\n"
    )
    with pytest.raises(Conflict, match="Nothing was changed"):
        GitWorktrees().apply(str(repository), f"{patch}@@ -0,0 +1 @@\n+x\n".encode())
    assert not (repository / target).exists()


def test_nothing_that_a_repository_configures_runs(
    repository: Path, folder: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(MARK.format(ran))
    program.chmod(0o755)
    hooks = repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-checkout", "reference-transaction", "pre-commit", "post-index-change"):
        (hooks / hook).write_text(MARK.format(ran))
        (hooks / hook).chmod(0o755)
    (repository / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    git(repository, "-c", "core.hooksPath=/dev/null", "add", "--all")
    git(repository, "-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", "Evil")
    for key in (
        *("filter.evil.smudge", "filter.evil.clean", "filter.evil.process"),
        *("diff.evil.textconv", "diff.evil.command", "diff.external", "merge.evil.driver"),
        *("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "credential.helper"),
        *("core.alternateRefsCommand", "gpg.program", "core.gitProxy"),
    ):
        git(repository, "config", key, str(program))
    git(repository, "config", "filter.evil.required", "true")
    git(repository, "config", "commit.gpgSign", "true")
    git(repository, "config", "core.worktree", "/")
    worktrees = make(repository, folder)
    (folder / "a.txt").write_text("changed\n")
    changes = collect(worktrees, folder)
    assert b"-one\n" in changes.patch
    worktrees.apply(str(repository), changes.patch)
    assert (repository / "a.txt").read_text() == "changed\n"
    worktrees.release(str(folder))
    assert not ran.exists()


def test_nothing_that_a_worktree_configures_runs(
    repository: Path, folder: Path, tmp_path: Path
) -> None:
    worktrees = make(repository, folder)
    ran = tmp_path / "ran"
    (folder / "program").write_text(MARK.format(ran))
    (folder / "program").chmod(0o755)
    (folder / ".gitattributes").write_text("* filter=evil diff=evil\n")
    inner = folder / "inner"
    inner.mkdir()
    git(inner, "init", "--quiet")
    (inner / "b.txt").write_text("x")
    (inner / ".gitattributes").write_text("* filter=evil\n")
    git(inner, "add", "--all")
    git(inner, "commit", "--quiet", "--message", "Inner")
    for place in (folder, inner):
        for key in ("filter.evil.smudge", "filter.evil.clean", "core.fsmonitor"):
            git(place, "config", key, str(folder / "program"))
    (inner / "b.txt").write_text("y")
    (folder / ".gitmodules").write_text(
        f'[submodule "inner"]\npath = inner\nurl = ext::{folder}/program\n'
        f"update = !{folder}/program\n"
    )
    collect(worktrees, folder)
    changes = collect(worktrees, folder)
    assert changes.left_out == ("repositories of their own: inner",)
    assert changes.paths == (".gitattributes", ".gitmodules", "program")
    assert not ran.exists()


def test_a_submodule_stays_and_is_not_entered(
    repository: Path, folder: Path, tmp_path: Path
) -> None:
    head = git(repository, "rev-parse", "HEAD")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    git(repository, "commit", "--quiet", "--message", "Submodule")
    worktrees = make(repository, folder)
    assert worktrees.collect(str(folder)) is None
    ran = tmp_path / "ran"
    (tmp_path / "program").write_text(MARK.format(ran))
    (tmp_path / "program").chmod(0o755)
    sub = folder / "sub"
    git(sub, "init", "--quiet")
    git(sub, "commit", "--quiet", "--allow-empty", "--message", "Inner")
    (sub / ".gitattributes").write_text("* filter=evil\n")
    (sub / "c.txt").write_text("x")
    git(sub, "add", "--all")
    git(sub, "config", "filter.evil.clean", str(tmp_path / "program"))
    git(sub, "config", "core.fsmonitor", str(tmp_path / "program"))
    (sub / "c.txt").write_text("y")
    assert worktrees.collect(str(folder)) is None
    assert not ran.exists()


def test_the_git_folder_of_a_worktree_may_be_replaced(
    repository: Path, folder: Path, tmp_path: Path
) -> None:
    worktrees = make(repository, folder)
    (folder / ".git").rename(tmp_path / "old")
    (folder / ".git").write_text(f"gitdir: {tmp_path / 'secret' / '.git'}\n")
    (folder / "a.txt").write_text("changed\n")
    assert collect(worktrees, folder).paths == ("a.txt",)


def test_links_are_taken_over_as_links(repository: Path, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("SECRET")
    worktrees = make(repository, folder)
    (folder / "file").symlink_to(tmp_path / "secret" / "key")
    (folder / "inside").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / "fifo")
    changes = collect(worktrees, folder)
    assert changes.paths == ("file", "inside")
    assert b"SECRET" not in changes.patch
    assert b"new file mode 120000" in changes.patch


def test_large_files_and_patches_are_left_out(repository: Path, folder: Path) -> None:
    worktrees = make(repository, folder)
    with (folder / "huge").open("wb") as file:
        file.truncate(module.MAX_FILE_BYTES + 1)
    (folder / "b.txt").write_text("x\n")
    changes = collect(worktrees, folder)
    assert changes.paths == ("b.txt",)
    assert changes.left_out == ("larger than 100.0 MB: huge",)
    (folder / "noise").write_bytes(os.urandom(module.MAX_PATCH_BYTES))
    changes = collect(worktrees, folder)
    assert (changes.paths, changes.patch) == (("b.txt", "noise"), b"")


def other_repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "secret", key="SECRET")


@pytest.mark.parametrize("trick", ["file", "link", "commondir", "alternates", "objects", "ref"])
def test_a_repository_that_is_partly_elsewhere_has_no_worktree(
    repository: Path, folder: Path, tmp_path: Path, trick: str
) -> None:
    secret, own = other_repository(tmp_path) / ".git", repository / ".git"
    match trick:
        case "file":
            own.rename(tmp_path / "moved")
            own.write_text(f"gitdir: {secret}\n")
        case "link":
            own.rename(tmp_path / "moved")
            own.symlink_to(secret)
        case "commondir":
            (own / "commondir").write_text(f"{secret}\n")
        case "alternates":
            (own / "objects" / "info").mkdir(exist_ok=True)
            (own / "objects" / "info" / "alternates").write_text(f"{secret}/objects\n")
        case "objects":
            (own / "objects" / "zz").symlink_to(secret / "objects")
        case _:
            (own / "refs" / "heads" / "main").unlink()
            (own / "refs" / "heads" / "main").symlink_to(secret / "refs" / "heads" / "main")
    with pytest.raises(InvalidRequest):
        GitWorktrees().describe(str(repository))
    with pytest.raises(InvalidRequest):
        make(repository, folder)
    assert not folder.exists()


def test_what_is_no_repository_is_explained(repository: Path, tmp_path: Path) -> None:
    worktrees = GitWorktrees()
    (repository / "docs").mkdir()
    empty, bare, plain = (tmp_path / name for name in ("empty", "bare", "plain"))
    for path in (empty, bare, plain):
        path.mkdir()
    git(empty, "init", "--quiet")
    git(bare, "init", "--quiet", "--bare")
    for path, sentence in (
        (repository / "docs", "only the root of a repository has a worktree"),
        (empty, "has no commit yet"),
        (bare, "is a bare repository"),
        (plain, "is not a git repository"),
        (tmp_path / "missing", "is not a git repository"),
    ):
        with pytest.raises(InvalidRequest, match=sentence):
            worktrees.describe(str(path))


def test_a_missing_repository_is_told(repository: Path, folder: Path) -> None:
    worktrees = make(repository, folder)
    (folder / "a.txt").write_text("changed\n")
    repository.rename(repository.parent / "moved")
    with pytest.raises(Conflict, match="cannot be committed"):
        worktrees.collect(str(folder))
    worktrees.release(str(folder))
    with pytest.raises(Conflict, match="The worktree is gone"):
        worktrees.collect(str(folder))


def test_a_shallow_repository_with_sha256_has_a_worktree(tmp_path: Path, folder: Path) -> None:
    source, shallow = tmp_path / "source", tmp_path / "shallow"
    source.mkdir()
    git(source, "init", "--quiet", "--object-format=sha256")
    for number in range(3):
        (source / "a.txt").write_text(f"{number}\n")
        git(source, "add", "--all")
        git(source, "commit", "--quiet", "--message", str(number))
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{source}", str(shallow))
    worktrees = make(shallow, folder)
    assert git(folder, "log", "--format=%s") == "2"
    (folder / "a.txt").write_text("changed\n")
    commit = collect(worktrees, folder).commit
    assert git(shallow, "rev-parse", BRANCH) == commit

"""Changes of runs in real folders, with real git repositories, links and hostile names."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from internal.agent.domain.errors import Conflict, NotFound, StoreUnavailable
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.workspaces import FileChange, FileChanges
from internal.tools.protected_paths import ProtectedPaths
from internal.workspace_changes import contents, records
from internal.workspace_changes.change_log import WorkspaceChangeLog

SESSION = SessionId("session-1")
RUN, OTHER = RunId("run-1"), RunId("run-2")


def changes_of(
    log: WorkspaceChangeLog, folder: Path, work: Callable[[], object]
) -> dict[str, FileChange]:
    """Return the changes of a run by path."""
    log.begin(str(folder), RUN, SESSION)
    work()
    return {each.path: each for each in log.record(str(folder), RUN).changes}


def test_made_changed_and_deleted_files_have_lines_diffs_and_are_undone(
    log: WorkspaceChangeLog, folder: Path
) -> None:
    (folder / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    (folder / "gone.txt").write_text("old\n")
    (folder / "same.txt").write_text("same\n")

    def work() -> None:
        (folder / "a.txt").write_bytes(b"one\r\n2\r\nthree\r\n")
        (folder / "gone.txt").unlink()
        (folder / "new").mkdir()
        (folder / "new" / "b.txt").write_text("b\n")
        (folder / "same.txt").write_text("same\n")

    found = changes_of(log, folder, work)
    assert {path: (each.kind, each.added, each.removed) for path, each in found.items()} == {
        "a.txt": ("changed", 2, 1),
        "gone.txt": ("deleted", 0, 1),
        "new/b.txt": ("created", 1, 0),
    }
    diff = log.diff(SESSION, found["a.txt"].id)
    assert "-two\n+2\n+three" in diff.text
    for each in found.values():
        assert log.undo(SESSION, each.id).is_undone
    assert (folder / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert (folder / "gone.txt").read_text() == "old\n"
    assert not (folder / "new" / "b.txt").exists()
    with pytest.raises(Conflict, match="undone before"):
        log.undo(SESSION, found["a.txt"].id)


def test_a_file_that_changed_since_is_not_undone(log: WorkspaceChangeLog, folder: Path) -> None:
    made = folder / "a.txt"
    found = changes_of(log, folder, lambda: made.write_text("by the run\n"))
    made.write_text("by a person\n")
    with pytest.raises(Conflict, match="changed since the run"):
        log.undo(SESSION, found["a.txt"].id)
    assert made.read_text() == "by a person\n"
    with pytest.raises(NotFound):
        log.diff(SessionId("session-2"), found["a.txt"].id)


def test_changes_between_runs_belong_to_no_run_and_those_before_a_crash_do(
    log: WorkspaceChangeLog, folder: Path
) -> None:
    changes_of(log, folder, lambda: (folder / "a.txt").write_text("1\n"))
    (folder / "person.txt").write_text("mine\n")
    log.begin(str(folder), OTHER, SESSION)
    (folder / "crash.txt").write_text("2\n")
    log.begin(str(folder), OTHER, SESSION)  # the process died and the run continues
    (folder / "a.txt").write_text("3\n")
    found = {each.path: each.kind for each in log.record(str(folder), OTHER).changes}
    assert found == {"a.txt": "changed", "crash.txt": "created"}
    newest = {each.path: each.run_id for each in log.of_session(SESSION).changes}
    assert newest == {"a.txt": OTHER, "crash.txt": OTHER}
    log.remove_session(SESSION)
    assert not log.of_session(SESSION).changes


def test_no_link_is_followed_out_of_the_workspace(
    log: WorkspaceChangeLog, folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path.resolve() / "outside"
    outside.mkdir()
    (outside / "private.txt").write_text("private\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "a.txt").write_text("a\n")

    def work() -> None:
        (folder / "link").symlink_to(outside)
        (folder / "sub" / "a.txt").write_text("b\n")

    found = changes_of(log, folder, work)
    assert set(found) == {"link", "sub/a.txt"}
    shutil.rmtree(folder / "sub")
    (folder / "sub").symlink_to(outside)
    (outside / "a.txt").write_text("b\n")
    with pytest.raises(Conflict):
        log.undo(SESSION, found["sub/a.txt"].id)
    assert (outside / "a.txt").read_text() == "b\n"
    assert str(outside) in log.diff(SESSION, found["link"].id).text


def test_hostile_names_and_a_file_in_the_place_of_a_folder(
    log: WorkspaceChangeLog, folder: Path
) -> None:
    (folder / "a").mkdir()
    (folder / "a" / "b.txt").write_text("b\n")
    names = ["new\nline", os.fsdecode(b"bad\xff"), "x" * 255, "\u202etricky"]

    def work() -> None:
        shutil.rmtree(folder / "a")
        (folder / "a").write_text("a file\n")
        for name in names:
            (folder / name).write_text("x\n")

    found = changes_of(log, folder, work)
    assert {path for path, each in found.items() if each.kind == "created"} == {
        "a", "new\\nline", "bad\\xff", "x" * 255, "\\u202etricky",
    }  # fmt: skip
    assert found["a/b.txt"].kind == "deleted"
    for path in ("bad\\xff", "new\\nline"):
        log.undo(SESSION, found[path].id)
    with pytest.raises(Conflict):
        log.undo(SESSION, found["a/b.txt"].id)
    assert (folder / "a").read_text() == "a file\n"
    log.undo(SESSION, found["a"].id)
    log.undo(SESSION, found["a/b.txt"].id)
    assert (folder / "a" / "b.txt").read_text() == "b\n"


def test_secrets_binary_and_large_files_are_named_without_content(
    log: WorkspaceChangeLog, folder: Path
) -> None:
    large = b"x" * (contents.MAX_KEPT_FILE_BYTES + 1)

    def work() -> None:
        (folder / ".env").write_text("TOKEN=very-secret\n")
        (folder / "picture.bin").write_bytes(b"\0\1")
        (folder / "large.txt").write_bytes(large)

    found = changes_of(log, folder, work)
    notes = {path: log.diff(SESSION, each.id).note for path, each in found.items()}
    assert notes == {".env": "secret", "picture.bin": "binary", "large.txt": "not_kept"}
    kept = b"".join(each.read_bytes() for each in folder.parent.rglob("*.sqlite*"))
    assert b"very-secret" not in kept
    log.undo(SESSION, found["large.txt"].id)
    assert not (folder / "large.txt").exists()


def test_skipped_folders_and_larkspurs_own_files_are_left_out(tmp_path: Path, folder: Path) -> None:
    home = folder / "larkspur-home"
    home.mkdir()
    log = WorkspaceChangeLog(home / "workspace-changes", ProtectedPaths(home))

    def work() -> None:
        for name in (".git", "node_modules", "env", "given"):
            (folder / name).mkdir()
            (folder / name / "x.txt").write_text("x\n")
        (folder / "env" / "pyvenv.cfg").write_text("")
        (folder / "seen.txt").write_text("x\n")
        os.mkfifo(folder / "pipe")

    log.begin(str(folder), RUN, SESSION, skipped=frozenset({"given"}))
    work()
    found = log.record(str(folder), RUN, skipped=frozenset({"given"}))
    assert [each.path for each in found.changes] == ["seen.txt"]


def test_a_repository_has_the_contents_of_committed_files(
    log: WorkspaceChangeLog, folder: Path
) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)

    (folder / "a.txt").write_text("committed\n")
    (folder / "b.txt").write_text("committed, too\n")
    for each in ("a.txt", "b.txt"):
        os.utime(folder / each, (1_000_000_000, 1_000_000_000))
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "one")

    def work() -> None:
        (folder / "a.txt").write_text("changed\n")
        (folder / "b.txt").unlink()
        git("add", ".")
        git("commit", "--quiet", "--message", "two")

    found = changes_of(log, folder, work)
    assert "-committed\n+changed" in log.diff(SESSION, found["a.txt"].id).text
    assert [(each.kind, each.added, each.removed) for each in found.values()] == [
        ("changed", 1, 1),
        ("deleted", 0, 1),
    ]
    log.undo(SESSION, found["b.txt"].id)
    assert (folder / "b.txt").read_text() == "committed, too\n"


def test_changed_permissions_are_shown_and_undone(log: WorkspaceChangeLog, folder: Path) -> None:
    script = folder / "run.sh"
    script.write_text("echo hi\n")
    script.chmod(0o644)
    found = changes_of(log, folder, lambda: script.chmod(0o755))
    assert found["run.sh"].kind == "changed"
    assert "old mode 100644\nnew mode 100755" in log.diff(SESSION, found["run.sh"].id).text
    script.chmod(0o700)
    with pytest.raises(Conflict, match="changed since"):
        log.undo(SESSION, found["run.sh"].id)
    script.chmod(0o755)
    log.undo(SESSION, found["run.sh"].id)
    assert script.stat().st_mode & 0o777 == 0o644


def test_calls_that_name_their_files_read_no_others(log: WorkspaceChangeLog, folder: Path) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        (folder / name).write_text(f"{name} before\n")
    root = str(folder)
    log.begin(root, RUN, SESSION, named=frozenset({"a.txt"}))
    with log._folder.open(root) as known:
        assert {path for path, state in known.files().items() if state.content} == {"a.txt"}
    (folder / "a.txt").write_text("after\n")
    log.begin(root, RUN, SESSION)  # a command follows: it may change every file
    (folder / "b.txt").write_text("after\n")
    found = {each.path: each for each in log.record(root, RUN).changes}
    assert set(found) == {"a.txt", "b.txt"}
    for each in found.values():
        log.undo(SESSION, each.id)
        assert (folder / each.path).read_text() == f"{each.path} before\n"


def test_another_folder_in_the_place_of_the_workspace_was_made_by_no_run(
    log: WorkspaceChangeLog, folder: Path
) -> None:
    (folder / "a.txt").write_text("a\n")
    log.begin(str(folder), RUN, SESSION)
    (folder / "a.txt").write_text("b\n")
    log.begin(str(folder), OTHER, SESSION)
    aside = folder.rename(folder.parent / "aside")
    folder.mkdir()
    (folder / "strange.txt").write_text("x\n")
    assert log.record(str(folder), OTHER) == FileChanges(is_complete=False)
    (change,) = log.of_run(SESSION, RUN).changes
    shutil.rmtree(folder)
    aside.rename(folder)
    with pytest.raises(Conflict, match="another folder by now"):
        log.undo(SESSION, change.id)
    folder.rename(aside)
    folder.symlink_to(aside)
    with pytest.raises(StoreUnavailable):
        log.begin(str(folder), RUN, SESSION)
    assert (aside / "a.txt").read_text() == "b\n"


def test_an_undo_that_was_killed_can_be_repeated(log: WorkspaceChangeLog, folder: Path) -> None:
    changed, made = folder / "a.txt", folder / "made.txt"
    changed.write_text("before\n")

    def work() -> None:
        changed.write_text("after\n")
        made.write_text("made\n")

    found = changes_of(log, folder, work)
    # killed after the file was replaced and before this was stored, and in the midst of another
    changed.write_text("before\n")
    made.unlink()
    number = found["a.txt"].id.partition("-")[2]
    (folder / f".larkspur-undo-{number}").write_text("bef")
    for each in found.values():
        assert log.undo(SESSION, each.id).is_undone
    assert [path.name for path in folder.iterdir()] == ["a.txt"]


def test_two_runs_at_once_have_their_changes_and_each_is_undone_once(
    log: WorkspaceChangeLog, folder: Path
) -> None:
    (folder / "a.txt").write_text("0\n")
    log.begin(str(folder), RUN, SESSION)
    (folder / "a.txt").write_text("1\n")
    log.begin(str(folder), OTHER, SESSION)
    (folder / "a.txt").write_text("2\n")
    (first,) = log.record(str(folder), RUN).changes
    (second,) = log.record(str(folder), OTHER).changes
    log.undo(SESSION, second.id)
    assert (folder / "a.txt").read_text() == "1\n"
    with pytest.raises(Conflict, match="Undo later changes first"):
        log.undo(SESSION, first.id)


def test_records_are_read_while_another_run_looks_through_the_workspace(
    log: WorkspaceChangeLog, folder: Path
) -> None:
    changes_of(log, folder, lambda: (folder / "a.txt").write_text("a\n"))
    with log._folder.open(str(folder)):
        assert [each.path for each in log.of_session(SESSION).changes] == ["a.txt"]
        assert log.open_runs(str(folder)) == []


def test_nothing_that_a_repository_configures_runs(
    log: WorkspaceChangeLog, folder: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho ran >> {mark}\ncat\n")
    program.chmod(0o755)

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)

    (folder / "a.txt").write_text("committed\n")
    os.utime(folder / "a.txt", (1_000_000_000, 1_000_000_000))
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "one")
    (folder / ".git/hooks").mkdir(exist_ok=True)
    for hook in ("post-index-change", "post-checkout", "fsmonitor-watchman"):
        shutil.copy(program, folder / ".git/hooks" / hook)
    (folder / ".gitattributes").write_text("* filter=evil diff=evil\n")
    for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv",
                "core.pager", "core.sshCommand", "core.alternateRefsCommand"):  # fmt: skip
        git("config", key, str(program))
    git("config", "core.hooksPath", str(folder / ".git/hooks"))
    mark.unlink(missing_ok=True)
    found = changes_of(log, folder, lambda: (folder / "a.txt").write_text("changed\n"))
    assert "-committed" in log.diff(SESSION, found["a.txt"].id).text
    log.undo(SESSION, found["a.txt"].id)
    assert not mark.exists()


@pytest.mark.slow
def test_twenty_thousand_changed_files_stay_within_the_bounds(
    log: WorkspaceChangeLog, folder: Path
) -> None:
    def write(text: str, count: int) -> None:
        for number in range(count):
            place = folder / f"{number // 500}"
            place.mkdir(exist_ok=True)
            (place / f"{number}.txt").write_text(f"{text} {number}\n")

    write("before", 20_010)
    found = changes_of(log, folder, lambda: write("after", 20_010))
    assert len(found) == records.MAX_CHANGES_OF_RUN == 20_000
    assert log.of_run(SESSION, RUN).omitted == 10
    assert found["0/0.txt"].kind == "changed"
    assert log.undo(SESSION, found["0/0.txt"].id).is_undone
    assert (folder / "0" / "0.txt").read_text() == "before 0\n"


@pytest.mark.slow
def test_files_that_change_during_the_walk_are_found_by_the_next(
    log: WorkspaceChangeLog, folder: Path
) -> None:
    for number in range(300):
        (folder / f"{number}.txt").write_text("0\n")
    log.begin(str(folder), RUN, SESSION)
    writer = subprocess.Popen(
        ["sh", "-c", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo $i > $((i % 300)).txt; done"],
        cwd=folder,
    )
    while writer.poll() is None:
        log.record(str(folder), RUN)
        log.begin(str(folder), OTHER, SESSION)
        log.record(str(folder), OTHER)
    log.begin(str(folder), RunId("run-3"), SESSION)
    log.record(str(folder), RunId("run-3"))
    with log._folder.open(str(folder)) as known:
        states = known.files()
        stored = {path: known.content(state.content) for path, state in states.items()}
    assert stored == {each.name: each.read_bytes() for each in folder.iterdir()}

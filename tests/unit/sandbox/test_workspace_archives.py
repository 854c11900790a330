"""Archives of workspaces: their content, and archives that were tampered with."""

import io
import os
import socket
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from internal.agent.domain.errors import StoreCorrupt, StoreUnavailable
from internal.agent.domain.ids import SessionId
from internal.agent.ports.workspaces import NotArchivable
from internal.sandbox.workspace_archives import MAX_VERSIONS, ArchiveLimits, FolderArchives

ID = SessionId("session-1")
Fill = Callable[[tarfile.TarFile], None]


@pytest.fixture
def archives(tmp_path: Path) -> FolderArchives:
    return FolderArchives(tmp_path / "one")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "one" / "workspaces" / ID
    folder.mkdir(parents=True, mode=0o700)
    return folder


@pytest.fixture
def other(tmp_path: Path) -> FolderArchives:
    """The archives of another host."""
    return FolderArchives(tmp_path / "two")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[io.BufferedRandom]:
    with (tmp_path / "archive").open("w+b") as opened:
        yield opened


def member(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.mode = kind, 0o755
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def write(file: io.BufferedRandom, *members: tarfile.TarInfo) -> int:
    """Write an archive with files of as many bytes as their headers say."""
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for each in members:
            archive.addfile(each, io.BytesIO(b"x" * each.size) if each.isreg() else None)
    file.flush()
    return file.fileno()


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_workspace_is_the_same_on_another_host(
    archives: FolderArchives, other: FolderArchives, workspace: Path, tmp_path: Path,
    file: io.BufferedRandom,
) -> None:  # fmt: skip
    (workspace / "a" / "empty").mkdir(parents=True)
    (workspace / "a" / "run.sh").write_text("echo lark\n")
    (workspace / "a" / "run.sh").chmod(0o4750)
    os.utime(workspace / "a" / "run.sh", (1_700_000_000, 1_700_000_000))
    (workspace / "link").symlink_to("a/run.sh")
    (workspace / "a" / "up").symlink_to("../link")
    os.link(workspace / "a" / "run.sh", workspace / "twin")
    name = os.fsdecode(b"na\xffme \xe5\x8d\x8a")
    (workspace / name).write_bytes(b"")
    task = tmp_path / "one" / "task-folders" / f"{ID}.task-7"
    task.mkdir(parents=True)
    (task / "part.txt").write_text("part")
    (tmp_path / "one" / "workspaces" / "session-2").mkdir()

    packed = archives.pack(ID, file.fileno())
    other.unpack(ID, file.fileno(), "v1")

    copy = tmp_path / "two" / "workspaces" / ID
    assert names(copy) == names(workspace)
    assert (packed.files, packed.left_out) == (4, ())
    script = (copy / "a" / "run.sh").stat()
    assert (script.st_mode & 0o7777, script.st_mtime) == (0o750, 1_700_000_000)
    assert (copy / "link").readlink() == Path("a/run.sh")
    assert (copy / "twin").read_text() == "echo lark\n"
    assert (tmp_path / "two" / "task-folders" / f"{ID}.task-7" / "part.txt").read_text() == "part"
    assert names(tmp_path / "two" / "workspaces") == [ID, *(f"{ID}/{n}" for n in names(copy))]
    assert other.versions(ID) == {"v1"}


def test_what_leads_outside_is_left_out(
    archives: FolderArchives, workspace: Path, file: io.BufferedRandom, tmp_path: Path
) -> None:
    (workspace / "sub").mkdir()
    (workspace / "here").symlink_to(".")
    for name, target in {
        "absolute": "/etc/passwd",
        "above": "../other",
        "chain": "here/here/../../other",
        "sub/above": "../../other",
    }.items():
        (workspace / name).symlink_to(target)
    os.mkfifo(workspace / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        before = os.getcwd()  # noqa: PTH109 - a path of a socket is short
        os.chdir(workspace)
        made.bind("socket")
        os.chdir(before)

    packed = archives.pack(ID, file.fileno())

    expected = ["above", "absolute", "chain", "pipe", "socket", "sub/above"]
    assert sorted(packed.left_out) == expected
    with tarfile.open(tmp_path / "archive") as archive:
        assert sorted(archive.getnames()) == ["workspace/here", "workspace/sub"]


def test_unpacking_replaces_what_is_there(
    archives: FolderArchives, workspace: Path, file: io.BufferedRandom
) -> None:
    (workspace / "kept").write_text("1")
    archives.pack(ID, file.fileno())
    (workspace / "kept").unlink()
    (workspace / "later").write_text("2")
    workspace.chmod(0o500)
    archives.unpack(ID, file.fileno(), "v1")
    assert names(workspace) == ["kept"]
    archives.unpack(ID, None, "v2")
    assert names(workspace) == []
    assert archives.versions(ID) == {"v2"}


HOSTILE: dict[str, list[tarfile.TarInfo]] = {
    "an absolute path": [member("/etc/lark", size=1)],
    "a path that leads up": [member("workspace/../../lark", size=1)],
    "a path from above": [member("../lark", size=1)],
    "a folder called ..": [member("workspace/..", tarfile.DIRTYPE)],
    "a folder called .": [member("workspace/./x", size=1)],
    "a top folder of its own": [member("other", tarfile.DIRTYPE)],
    "a folder that was not named": [member("workspace/a/b", size=1)],
    "a task folder with a strange name": [member("tasks/a b", tarfile.DIRTYPE)],
    "a file twice": [member("workspace/a", size=1), member("workspace/a", size=1)],
    "a file through a link": [
        member("workspace/out", tarfile.SYMTYPE, linkname="."),
        member("workspace/out/file", size=1),
    ],
    "a link in place of a folder": [
        member("workspace/a", tarfile.DIRTYPE),
        member("workspace/a", tarfile.SYMTYPE, linkname="."),
    ],
    "an absolute link": [member("workspace/a", tarfile.SYMTYPE, linkname="/etc")],
    "a link that leads up": [member("workspace/a", tarfile.SYMTYPE, linkname="../..")],
    "a link that leads up by another": [
        member("workspace/a", tarfile.SYMTYPE, linkname="."),
        member("workspace/b", tarfile.SYMTYPE, linkname="a/a/../.."),
    ],
    "a link to nothing": [member("workspace/a", tarfile.SYMTYPE, linkname="")],
    "a hard link": [member("workspace/a", tarfile.LNKTYPE, linkname="/etc/passwd")],
    "a device": [member("workspace/a", tarfile.CHRTYPE, devmajor=1, devminor=3)],
    "a block device": [member("workspace/a", tarfile.BLKTYPE)],
    "a pipe": [member("workspace/a", tarfile.FIFOTYPE)],
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_changes_nothing(
    archives: FolderArchives, workspace: Path, file: io.BufferedRandom, tmp_path: Path, case: str
) -> None:
    (workspace / "mine").write_text("1")
    (tmp_path / "one" / "task-folders").mkdir()
    archives.add_version(ID, "v1")
    before = names(tmp_path)
    with pytest.raises(StoreCorrupt, match="the archive contains"):
        archives.unpack(ID, write(file, *HOSTILE[case]), "v2")
    assert names(tmp_path) == before
    assert archives.versions(ID) == {"v1"}


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b" + b"\0" * 50])
def test_a_damaged_archive_changes_nothing(
    archives: FolderArchives, workspace: Path, file: io.BufferedRandom, content: bytes
) -> None:
    (workspace / "mine").write_text("1")
    file.write(content)
    file.flush()
    with pytest.raises((StoreCorrupt, StoreUnavailable)):
        archives.unpack(ID, file.fileno(), "v2")
    assert names(workspace) == ["mine"]


def test_a_truncated_archive_changes_nothing(
    archives: FolderArchives, workspace: Path, file: io.BufferedRandom
) -> None:
    (workspace / "mine").write_bytes(os.urandom(200_000))
    archives.pack(ID, file.fileno())
    file.truncate(100_000)
    with pytest.raises(StoreCorrupt, match="the archive is damaged"):
        archives.unpack(ID, file.fileno(), "v2")
    assert (workspace / "mine").stat().st_size == 200_000


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (ArchiveLimits(entries=3), "they are more than 3"),
        (ArchiveLimits(unpacked_bytes=1000), "they are larger than 1000 bytes"),
        (ArchiveLimits(packed_bytes=1000), "they are larger than 1000 bytes as an archive"),
    ],
)
def test_a_workspace_beyond_a_limit_is_not_archived(
    workspace: Path, file: io.BufferedRandom, tmp_path: Path, limits: ArchiveLimits, reason: str
) -> None:
    for number in range(4):
        (workspace / f"{number}").write_bytes(os.urandom(500))
    with pytest.raises(NotArchivable) as caught:
        FolderArchives(tmp_path / "one", limits).pack(ID, file.fileno())
    assert str(caught.value) == reason


def test_an_archive_that_grows_beyond_the_limit_is_not_unpacked(
    workspace: Path, file: io.BufferedRandom, tmp_path: Path
) -> None:
    archives = FolderArchives(tmp_path / "one", ArchiveLimits(unpacked_bytes=1000))
    with pytest.raises(StoreCorrupt, match="too large"):
        archives.unpack(ID, write(file, member("workspace/a", size=1001)), "v2")
    assert names(workspace) == []


def test_a_workspace_with_a_worktree_is_not_archived(
    archives: FolderArchives, workspace: Path, file: io.BufferedRandom, tmp_path: Path
) -> None:
    assert workspace.is_dir()
    (tmp_path / "one" / "worktrees" / f"{ID}.task-1").mkdir(parents=True)
    with pytest.raises(NotArchivable, match="git worktree"):
        archives.pack(ID, file.fileno())


def test_the_fingerprint_changes_with_the_files(archives: FolderArchives, workspace: Path) -> None:
    seen = [archives.fingerprint(ID)]
    for change in (
        lambda: (workspace / "a").write_text("1"),
        lambda: (workspace / "a").write_text("22"),
        lambda: (workspace / "a").chmod(0o600 if os.umask(0o022) else 0o700),
        lambda: (workspace / "a").rename(workspace / "b"),
        (workspace / "b").unlink,
    ):
        change()
        seen.append(archives.fingerprint(ID))
        assert archives.fingerprint(ID) == seen[-1]
    assert seen[0] == seen[-1] == ""
    assert len(set(seen)) == len(seen) - 1


def test_versions_belong_to_a_folder_that_exists(archives: FolderArchives, workspace: Path) -> None:
    for number in range(MAX_VERSIONS + 1):
        archives.add_version(ID, f"v{number}")
    assert len(archives.versions(ID)) == MAX_VERSIONS
    assert "v0" not in archives.versions(ID)
    workspace.rmdir()
    assert archives.versions(ID) == frozenset()

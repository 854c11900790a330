"""Folders and files that are exchanged with links while the gateway packs or removes them."""

import asyncio
import contextlib
import io
import os
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from internal.agent.domain.ids import SessionId
from internal.agent.ports.workspaces import NotArchivable
from internal.sandbox.workspace_archives import FolderArchives
from internal.sandbox.workspaces import remove_tree
from internal.skills.errors import SkillRefused, SkillUnreadable
from internal.skills.installation import add_skills
from internal.skills.skill_folder import read_contents
from tests.support.bubblewrap_places import Place
from tests.support.folder_swap import swap_everywhere

ID = SessionId("session-1")
CANARY = b"canary-of-the-person"
Prepare = Callable[[], tuple[Path, Path]]


@pytest.fixture(params=["sub", "sub/key"])
def part(request: pytest.FixtureRequest) -> str:
    """Part of the path that is swapped for a link to a counterpart outside."""
    return str(request.param)


@pytest.fixture(params=[True, False], ids=["stays", "blinks"])
def stays(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def prepare(tmp_path: Path, part: str) -> Prepare:
    """Make a workspace, and folders outside with the same names and sizes."""

    def make() -> tuple[Path, Path]:
        shutil.rmtree(tmp_path / "home", ignore_errors=True)
        shutil.rmtree(tmp_path / "outside", ignore_errors=True)
        workspace = tmp_path / "home" / "workspaces" / ID
        for top, content in ((workspace, b"x" * len(CANARY)), (tmp_path / "outside", CANARY)):
            (top / "sub" / "inner").mkdir(parents=True)
            (top / "sub" / "key").write_bytes(content)
            (top / "sub" / "inner" / "key").write_bytes(content)
            (top / "SKILL.md").write_text("---\nname: one\ndescription: One.\n---\n")
        (tmp_path / "outside" / "sub" / "inner").chmod(0o751)
        link = tmp_path / "home" / "link"
        link.symlink_to(tmp_path / "outside" / part)
        return workspace / part, link

    return make


def test_an_archive_contains_nothing_of_elsewhere(
    prepare: Prepare, stays: bool, tmp_path: Path
) -> None:
    packed = io.BytesIO()

    def pack() -> None:
        with (tmp_path / "archive").open("w+b") as file:
            try:
                FolderArchives(tmp_path / "home").pack(ID, file.fileno())
            finally:
                file.seek(0)
                packed.seek(0)
                packed.truncate()
                packed.write(file.read())

    def check() -> None:
        packed.seek(0)
        try:
            with tarfile.open(fileobj=packed) as archive:
                files = [archive.extractfile(each) for each in archive if each.isreg()]
                found = b"".join(file.read() for file in files if file is not None)
        except tarfile.ReadError:  # nothing was written
            return
        assert CANARY not in found

    assert swap_everywhere(prepare, pack, check, stays=stays, errors=(NotArchivable,)) > 5


SWAP = """
import ctypes, os
libc = ctypes.CDLL(None)
watch = libc.inotify_init1(0)
libc.inotify_add_watch(watch, b"bbb", 0x20)  # IN_OPEN
print("ready", flush=True)
os.read(watch, 4096)
libc.renameat2(-100, b"aaa", -100, b"link", 2)  # RENAME_EXCHANGE
print("swapped", flush=True)
"""


@pytest.mark.needs("namespaces")
async def test_an_isolated_command_swaps_a_folder_while_it_is_packed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    workspace, outside = tmp_path / "home" / "workspaces" / ID, tmp_path / "outside"
    (workspace / "aaa").mkdir(parents=True)
    (workspace / "aaa" / "secret").write_text("x" * len(place.token))
    (workspace / "bbb").write_text("is packed when aaa was found, and before it is opened")
    (workspace / "ccc").write_bytes(os.urandom(8_000_000))  # takes some time to be packed
    (workspace / "link").symlink_to(outside)
    (workspace / "swap.py").write_text(SWAP)
    place.workspace = workspace
    swapping = asyncio.create_task(place.run("/usr/bin/python3 swap.py"))
    await place.ready.wait()
    archive = tmp_path / "archive"
    with archive.open("w+b") as file, contextlib.suppress(NotArchivable):
        await asyncio.to_thread(FolderArchives(tmp_path / "home").pack, ID, file.fileno())
    await swapping
    assert b"swapped" in place.output
    assert (workspace / "aaa").readlink() == outside
    assert place.token.encode() not in zlib.decompressobj(31).decompress(archive.read_bytes())


def test_nothing_elsewhere_is_removed_or_changed(
    prepare: Prepare, stays: bool, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"

    def check() -> None:
        assert len(list(outside.rglob("*"))) == 5
        assert (outside / "sub" / "inner").stat().st_mode & 0o777 == 0o751

    def remove() -> None:
        remove_tree(tmp_path / "home" / "workspaces" / ID)

    assert swap_everywhere(prepare, remove, check, stays=stays, errors=(OSError,)) > 5


def test_a_skill_has_nothing_of_elsewhere(prepare: Prepare, stays: bool, tmp_path: Path) -> None:
    source, read = tmp_path / "home" / "workspaces" / ID, list[bytes]()

    def use() -> None:
        read_contents(source, "SKILL.md", lambda _path, content: read.append(content))

    def check() -> None:
        assert CANARY not in read

    assert swap_everywhere(prepare, use, check, stays=stays, errors=(SkillUnreadable,)) > 5


@pytest.mark.parametrize("part", ["sub"])
def test_a_skill_is_copied_without_anything_of_elsewhere(prepare: Prepare, tmp_path: Path) -> None:
    source, skills = tmp_path / "home" / "workspaces" / ID, tmp_path / "skills"

    def copy() -> None:
        shutil.rmtree(skills, ignore_errors=True)
        add_skills(source, skills)

    def check() -> None:
        copied = [each for each in skills.rglob("*") if each.is_file() and not each.is_symlink()]
        assert CANARY not in [each.read_bytes() for each in copied]

    errors = (SkillUnreadable, SkillRefused)
    assert swap_everywhere(prepare, copy, check, stays=True, errors=errors) > 5


def test_folders_are_removed_however_deep_they_are(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    # deeper than a recursion, a path and the descriptors of a process reach
    for _ in range(1_100):
        (tmp_path / "new").mkdir()
        top.rename(tmp_path / "new" / "d")
        (tmp_path / "new").rename(top)
    (top / "file").write_text("x")
    top.chmod(0)
    try:
        remove_tree(top)
        assert list(tmp_path.iterdir()) == []
    finally:
        subprocess.run(["rm", "-rf", top], check=True)  # pytest cannot

"""Instruction files that commands wrote, remembered in the home folder."""

import json
import stat
import threading
from pathlib import Path

import pytest

from internal.tools.untrusted_files import MAX_FILES, UntrustedFiles


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "AGENTS.md"
    path.parent.mkdir()
    path.write_text("obey")
    return path


def test_what_a_command_wrote_is_untrusted_until_a_person_agrees(
    tmp_path: Path, file: Path
) -> None:
    files = UntrustedFiles(tmp_path)
    assert not files.contains(str(file), b"obey")
    files.record([str(file), str(file.with_name("other.txt")), str(file.with_name("CLAUDE.md"))])
    again = UntrustedFiles(tmp_path)
    assert again.contains(str(file), b"obey")
    assert not again.contains(str(file), b"a person changed it")
    assert again.trust(str(file))
    assert not again.trust(str(file))
    assert not files.contains(str(file), b"obey")
    assert stat.S_IMODE((tmp_path / "untrusted.json").stat().st_mode) == 0o600


def test_a_link_is_remembered_by_where_it_leads(tmp_path: Path, file: Path) -> None:
    link = file.with_name("CLAUDE.md")
    link.symlink_to(file)
    files = UntrustedFiles(tmp_path)
    files.record([str(link)])
    assert files.contains(str(file), b"obey")
    assert files.trust(str(link))


def test_only_so_many_are_remembered_and_a_damaged_file_is_none(tmp_path: Path, file: Path) -> None:
    old = {f"/old/{number}/AGENTS.md": "x" for number in range(MAX_FILES)}
    (tmp_path / "untrusted.json").write_text(json.dumps(old))
    files = UntrustedFiles(tmp_path)
    files.record([str(file)])
    kept = json.loads((tmp_path / "untrusted.json").read_text())
    assert len(kept) == MAX_FILES
    assert "/old/0/AGENTS.md" not in kept
    (tmp_path / "untrusted.json").write_text("{")
    assert not files.contains(str(file), b"obey")
    files.record([str(file)])
    assert files.contains(str(file), b"obey")


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    paths = []
    for number in range(20):
        path = tmp_path / str(number) / "AGENTS.md"
        path.parent.mkdir()
        path.write_text("x")
        paths.append(path)
    threads = [
        threading.Thread(target=UntrustedFiles(tmp_path).record, args=([str(path)],))
        for path in paths
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(UntrustedFiles(tmp_path).contains(str(path), b"x") for path in paths)


def test_without_the_home_folder_nothing_breaks(tmp_path: Path, file: Path) -> None:
    files = UntrustedFiles(tmp_path / "missing")
    files.record([str(file)])
    assert not files.contains(str(file), b"obey")

"""The folder for people: which files are found, and that no link or special file is opened."""

import os
import socket
from pathlib import Path

import pytest

from internal.agent.app.files import output_folder
from internal.agent.app.files.output_folder import (
    MAX_DEPTH,
    OutputFileIgnored,
    open_output,
    output_exists,
    scan_output,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "output").mkdir()
    return tmp_path / "output"


def found(folder: Path) -> list[str]:
    return [file.path for file in scan_output(str(folder)).files]


def read(folder: Path, path: str) -> bytes:
    descriptor, _ = open_output(str(folder), path)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def test_files_are_found_in_all_folders_in_order(folder: Path) -> None:
    (folder / "charts" / "2026").mkdir(parents=True)
    for path in ("b.txt", "a.txt", "charts/2026/q1.png", "empty"):
        (folder / path).write_text("" if path == "empty" else path)
    assert found(folder) == ["a.txt", "b.txt", "charts/2026/q1.png", "empty"]
    assert read(folder, "charts/2026/q1.png") == b"charts/2026/q1.png"
    assert read(folder, "empty") == b""


def test_a_missing_folder_has_no_files(tmp_path: Path) -> None:
    assert not output_exists(str(tmp_path / "output"))
    assert scan_output(str(tmp_path / "output")) == ((), {}, True)


@pytest.mark.parametrize(
    "name", [".hidden", ".git/config", "~$report.docx", "video.mp4.part", "x.TMP"]
)
def test_hidden_and_temporary_files_are_left_out(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("x")
    (folder / "kept.txt").write_text("x")
    assert scan_output(str(folder)).ignored == {}
    assert found(folder) == ["kept.txt"]


def test_links_and_special_files_are_left_out_with_a_reason(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (folder / "link").symlink_to(secret)
    (folder / "folder").symlink_to(tmp_path)
    (folder / "other-name").hardlink_to(secret)
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(folder)  # the path of a socket is limited to 107 bytes
        listening.bind("socket")
        os.chdir(here)
        scan = scan_output(str(folder))
    assert scan.files == ()
    assert scan.ignored == {
        "link": "a symbolic link",
        "folder": "a symbolic link",
        "other-name": "it has other names (hard links)",
        "fifo": "not a regular file",
        "socket": "not a regular file",
    }
    for path, reason in scan.ignored.items():
        with pytest.raises(OutputFileIgnored) as refused:
            open_output(str(folder), path)
        if path != "socket":
            assert str(refused.value) == reason or path == "folder"


def test_a_folder_that_becomes_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "a.txt").write_text("mine")
    (tmp_path / "a.txt").write_text("not mine")
    assert found(folder) == ["sub/a.txt"]
    (folder / "sub").rename(tmp_path / "moved")
    (folder / "sub").symlink_to(tmp_path)
    with pytest.raises(OutputFileIgnored):
        open_output(str(folder), "sub/a.txt")
    folder.rename(tmp_path / "real")
    folder.symlink_to(tmp_path / "real")
    assert output_exists(str(folder))
    assert scan_output(str(folder)).files == ()
    assert scan_output(str(folder)).ignored == {"": "not a directory"}


def test_the_identity_changes_with_the_content(folder: Path) -> None:
    file = folder / "a.txt"
    file.write_text("one")
    before = scan_output(str(folder)).files
    assert scan_output(str(folder)).files == before
    assert open_output(str(folder), "a.txt")[1] == before[0].identity
    file.write_text("two!")
    assert scan_output(str(folder)).files != before


def test_a_folder_that_is_too_deep_is_left_out(folder: Path) -> None:
    deep = folder.joinpath(*"123456789")
    deep.mkdir(parents=True)
    (deep / "a.txt").write_text("x")
    (deep.parents[1] / "b.txt").write_text("x")
    scan = scan_output(str(folder))
    assert [file.path for file in scan.files] == ["1/2/3/4/5/6/7/b.txt"]
    assert scan.ignored == {"1/2/3/4/5/6/7/8": f"deeper than {MAX_DEPTH} folders"}


def test_a_scan_ends_at_its_limit_of_entries(folder: Path) -> None:
    for number in range(output_folder.MAX_ENTRIES + 1):
        (folder / f".{number}").touch()
    assert not scan_output(str(folder)).is_complete
    (folder / ".0").unlink()
    assert scan_output(str(folder)).is_complete


def test_names_that_are_not_text_are_found(folder: Path) -> None:
    (folder / os.fsdecode(b"bad\xff.txt")).write_text("x")
    assert read(folder, found(folder)[0]) == b"x"

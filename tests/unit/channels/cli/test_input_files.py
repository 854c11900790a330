"""Attached files: refusals with their sentences, media types, and reading in pieces."""

import os
import socket
from pathlib import Path

import pytest

from internal.channels.cli.exit_codes import CliExit
from internal.channels.cli.input_files import (
    MAX_FILE_BYTES,
    MAX_FILES,
    check_file,
    check_files,
    media_type_of,
)


def test_files_have_a_media_type(tmp_path: Path) -> None:
    contents = {
        "a.png": b"\x89PNG\r\n\x1a\n",
        "b.py": b"x = 1",
        "notes": "点".encode(),
        "blob": b"\xff",
        "scan": b"%PDF-1.7",
        "wrong.png": b"no picture",
        "photo": b"RIFF1234WEBPVP8",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    files = check_files(str(tmp_path / name) for name in contents)
    assert [(file.name, file.media_type, file.size) for file in files] == [
        ("a.png", "image/png", 8),
        ("b.py", "text/x-python", 5),
        ("notes", "text/plain", 3),
        ("blob", "application/octet-stream", 1),
        ("scan", "application/pdf", 8),
        ("wrong.png", "application/octet-stream", 10),
        ("photo", "image/webp", 15),
    ]
    assert [b"".join(file.chunks()) for file in files] == [*contents.values()]


def test_a_character_that_is_cut_is_still_text() -> None:
    assert media_type_of("notes", "点".encode()[:2]) == "text/plain"
    assert media_type_of("notes", b"a\0") == "application/octet-stream"


def make(folder: Path, kind: str) -> str:
    path = folder / "thing"
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(path))
        case "empty":
            path.touch()
        case "large":
            path.touch()
            os.truncate(path, MAX_FILE_BYTES + 1)
        case "nul":
            return "nul\0l"
        case "long":
            return "x" * 300
        case "device":
            return "/dev/zero"
        case _:
            pass
    return str(path)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("missing", "thing does not exist."),
        ("folder", "thing is a folder; attach its files, or an archive of it."),
        ("pipe", "thing is a pipe; save its content to a file first."),
        ("socket", "thing is a socket."),
        ("device", "The file /dev/zero is a device."),
        ("empty", "thing is empty."),
        ("large", "thing is larger than 100 MB."),
        ("long", "cannot be read: File name too long."),
        ("nul", "cannot be read: embedded null byte."),
    ],
)
def test_what_is_no_file_is_refused_in_a_sentence(tmp_path: Path, kind: str, sentence: str) -> None:
    with pytest.raises(CliExit) as refused:
        check_files([make(tmp_path, kind)])
    assert str(refused.value).endswith(sentence)
    assert refused.value.code == 2


def test_a_file_that_is_named_twice_is_attached_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, link = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_text("x")
    link.symlink_to(path)
    assert len(check_files([str(path), str(link)])) == 1
    assert "attached once" in capfd.readouterr().err


def test_the_number_of_files_is_limited(tmp_path: Path) -> None:
    paths = [tmp_path / f"{n}.txt" for n in range(MAX_FILES + 1)]
    for path in paths:
        path.write_text("x")
    with pytest.raises(CliExit, match="51 files are too many: attach at most 50"):
        check_files(map(str, paths))


@pytest.mark.parametrize("change", ["grow", "shrink", "rewrite", "remove"])
def test_a_file_that_changes_is_not_sent(tmp_path: Path, change: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(bytes(1_000_000))
    pieces = check_file(str(path)).chunks()
    if change == "remove":
        path.unlink()
    else:
        next(pieces)
    if change == "grow":
        with path.open("ab") as file:
            file.write(b"more")
    elif change == "shrink":
        os.truncate(path, 300_000)
    elif change == "rewrite":
        with path.open("r+b") as file:
            file.write(b"other")
        os.utime(path, ns=(1, 1))
    with pytest.raises(CliExit, match=r"changed while it was sent|does not exist"):
        b"".join(pieces)


def test_a_file_that_changed_before_it_was_sent_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one")
    file = check_file(str(path))
    path.write_text("three")
    with pytest.raises(CliExit, match="changed while it was sent"):
        next(file.chunks())


def test_a_file_is_attached_by_a_name_that_looks_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "cafe\u0301"
    folder.mkdir()
    (folder / "Shot 9.41\u202fAM.txt").write_text("text")
    file = check_file(f"{tmp_path}/caf\u00e9/Shot 9.41 AM.txt")
    assert (file.name, b"".join(file.chunks())) == ("Shot 9.41\u202fAM.txt", b"text")
    (folder / "Shot 9.41\u00a0AM.txt").write_text("other")
    with pytest.raises(
        CliExit, match=r"ambiguous: Shot 9\.41\\xa0AM\.txt, Shot 9\.41\\u202fAM\.txt"
    ):
        check_file(f"{tmp_path}/caf\u00e9/Shot 9.41 AM.txt")
    assert check_file(f"{folder}/Shot 9.41\u00a0AM.txt").size == 5

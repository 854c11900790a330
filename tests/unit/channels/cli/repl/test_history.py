"""The history file: stored entries, access to the file, and a file that cannot be used."""

import json
import os
from pathlib import Path

import pytest

from internal.channels.cli.repl.history import HistoryFile


def stored(path: Path) -> list[str]:
    return [*HistoryFile(path).load_history_strings()]


def test_entries_are_loaded_newest_first(tmp_path: Path) -> None:
    path = tmp_path / "history"
    for text in ("first", "two\nlines 模型", "last"):
        HistoryFile(path).store_string(text)
    assert stored(path) == ["last", "two\nlines 模型", "first"]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "  \n", " secret", "x" * 100_001])
def test_blank_private_and_very_long_entries_are_not_stored(tmp_path: Path, text: str) -> None:
    HistoryFile(tmp_path / "history").store_string(text)
    assert not (tmp_path / "history").exists()


def test_damaged_lines_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_bytes(b'"one"\n{"a": 1}\n\xff\n"torn\n"two"\n')
    assert stored(path) == ["two", "one"]


def test_a_long_file_is_shortened_to_the_newest_entries(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("".join(f"{json.dumps(str(n))}\n" for n in range(2_001)), encoding="utf-8")
    assert stored(path)[:2] == ["2000", "1999"]
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1_000
    assert [entry.name for entry in tmp_path.iterdir()] == ["history"]


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "history"
    target.write_text('"one"\n', encoding="utf-8")
    link.symlink_to(target)
    HistoryFile(link).store_string("two")
    assert stored(link) == []
    assert target.read_text(encoding="utf-8") == '"one"\n'


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "history")
    HistoryFile(tmp_path / "history").store_string("one")
    assert stored(tmp_path / "history") == []

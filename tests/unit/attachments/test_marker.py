"""The id of a folder that hosts share."""

import threading
from pathlib import Path

import pytest

from internal.agent.domain.errors import StoreUnavailable
from internal.attachments.marker import MARKER_FILE, find_marker, new_marker


def test_a_folder_gets_an_id_once(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    assert find_marker(folder) == ""
    assert not folder.exists()
    assert find_marker(folder, "one") == "one"
    assert find_marker(folder, "two") == find_marker(folder) == "one"
    assert [path.name for path in folder.iterdir()] == [MARKER_FILE]
    assert new_marker() != new_marker()


def test_processes_that_start_at_once_get_the_same_id(tmp_path: Path) -> None:
    start, found = threading.Barrier(8), set[str]()

    def find(number: int) -> None:
        start.wait()
        found.add(find_marker(tmp_path, f"id-{number}"))

    threads = [threading.Thread(target=find, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match=r"file/x cannot be used: not a directory\."):
        find_marker(tmp_path / "file" / "x", "one")

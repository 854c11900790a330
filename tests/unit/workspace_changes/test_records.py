"""The stored walk, the kept contents and the changes of runs."""

from contextlib import suppress
from pathlib import Path

import pytest

from internal.agent.domain.errors import StoreUnavailable
from internal.workspace_changes.contents import ABSENT, WatchedFileState
from internal.workspace_changes.records import _MAX_HELD_BYTES, ChangeFolder, is_same

ROOT = "/srv/garden"


def state(content: str = "a", mode: int = 0o644, identity: str = "1:1:1:1") -> WatchedFileState:
    return WatchedFileState("file", content, 1, mode, identity)


@pytest.fixture
def place(tmp_path: Path) -> ChangeFolder:
    return ChangeFolder(tmp_path / "changes")


def test_contents_are_stored_together_and_removed_when_unused(place: ChangeFolder) -> None:
    pieces = {str(number): bytes([number]) * (_MAX_HELD_BYTES // 3) for number in range(5)}
    with place.open(ROOT) as records:
        for name, content in pieces.items():
            records.keep(name, content)
        assert records.content("0") == pieces["0"]  # stored
        assert records.content("4") == pieces["4"]  # still held
        records.save_files({"x": state("4")}, [])
    with place.open(ROOT) as records:
        assert records.kept_bytes() == sum(map(len, pieces.values()))
        records.remove_unused_contents()
        assert (records.content("0"), records.content("4")) == (None, pieces["4"])


def test_a_change_keeps_its_first_state_and_is_gone_when_nothing_changed(
    place: ChangeFolder,
) -> None:
    with place.open(ROOT) as records:
        records.open_run("run", "session")
        records.save_changes("run", {"x": (ABSENT, state("a")), "y": (state("1"), state("2"))})
        records.save_changes("run", {"x": (state("a"), state("b")), "y": (state("2"), state("1"))})
        (change,) = records.changes_of_run("run")
        assert (change.path, change.before, change.after.content) == ("x", ABSENT, "b")


def test_a_failure_stores_nothing_and_another_session_sees_nothing(place: ChangeFolder) -> None:
    place.add_session("session", ROOT)
    with suppress(RuntimeError), place.open(ROOT) as records:
        records.open_run("run", "session")
        raise RuntimeError
    with place.open(ROOT) as records:
        assert records.run("run") is None
        records.open_run("run", "session")
        records.save_changes("run", {"x": (ABSENT, state())})
        (change,) = records.changes_of_run("run")
        assert records.change("other", change.id) is None
    place.remove_session("session")
    assert not place.exists(ROOT)
    assert place.roots_of("session") == []


def test_a_damaged_database_is_said(place: ChangeFolder, tmp_path: Path) -> None:
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / f"{place.key(ROOT)}.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(StoreUnavailable, match="cannot be stored"), place.open(ROOT):
        pass


def test_states_are_equal_by_content_and_permissions() -> None:
    assert is_same(state("a"), state("a", identity="2:2:2:2"))
    assert not is_same(state("a"), state("b"))
    assert not is_same(state("a"), state("a", 0o755))
    assert not is_same(ABSENT, state())
    # contents that are not known: size and time of the content
    assert is_same(state(""), state("", identity="1:1:1:9"))
    assert not is_same(state(""), state("", identity="1:1:2:1"))


def test_reading_waits_for_no_writer(place: ChangeFolder) -> None:
    with place.open(ROOT) as records:
        records.open_run("run", "session")
    with place.open(ROOT) as writer, place.open(ROOT, for_reading=True) as reader:
        writer.close_run("run")
        assert reader.open_runs() == ["run"]

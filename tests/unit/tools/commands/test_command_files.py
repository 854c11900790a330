"""Files of background commands, which outlive the command and the process."""

from pathlib import Path

import msgspec
import pytest

from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.commands import BackgroundCommand
from internal.tools.commands.command_files import MAX_KEPT_BYTES, MAX_LISTED, CommandFiles

SESSION = SessionId("session-1")


def command(name: str, started: str = "2026-11-29T10:00:00Z") -> BackgroundCommand:
    return BackgroundCommand(name, SESSION, RunId("run-1"), "make", started, kept=False)


@pytest.fixture
def files(tmp_path: Path) -> CommandFiles:
    return CommandFiles(tmp_path / "commands")


def test_a_command_that_runs_and_one_that_ended_are_listed_in_order(files: CommandFiles) -> None:
    running, ended = files.create(SESSION, "bg-2"), files.create(SESSION, "bg-1")
    running.save(command("bg-2", "2026-11-29T10:00:02Z"))
    running.write(b"Serving on http://127.0.0.1:8000\n", b"")
    ended.write(b"built\n", b"")
    done = msgspec.structs.replace(command("bg-1"), ended="2026-11-29T10:00:01Z")
    ended.save(done, "[exit code 0]")
    ended.close()
    first, second = files.list_stored(SESSION)
    assert (first.record.id, first.output, first.end) == ("bg-1", b"built\n", "[exit code 0]")
    assert (second.record.ended, second.record.address) == (None, "http://127.0.0.1:8000")
    running.close()
    assert files.list_stored(SessionId("session-2")) == []


def test_a_command_whose_process_is_gone_has_ended_with_it(files: CommandFiles) -> None:
    made = files.create(SESSION, "bg-1")
    made.save(command("bg-1"))
    made.write(b"half", b"half")
    made.close()  # the lock is gone as after kill -9
    (one,) = files.list_stored(SESSION)
    assert one.record.ended is not None
    assert (one.end, one.output) == ("[ended with Larkspur]", b"half")


def test_of_long_output_the_end_is_kept(files: CommandFiles, tmp_path: Path) -> None:
    made = files.create(SESSION, "bg-1")
    made.save(command("bg-1"))
    kept = bytearray()
    for number in range(5):
        chunk = bytes([65 + number]) * (MAX_KEPT_BYTES // 2)
        kept = (kept + chunk)[-MAX_KEPT_BYTES:]
        made.write(chunk, kept)
    (one,) = files.list_stored(SESSION)
    assert one.output == bytes(kept)
    log = next((tmp_path / "commands").rglob("*.log"))
    assert log.stat().st_size <= 2 * MAX_KEPT_BYTES
    made.close()


def test_the_oldest_ended_commands_are_removed_and_damaged_ones_left_out(
    files: CommandFiles, tmp_path: Path
) -> None:
    for number in range(MAX_LISTED + 5):
        made = files.create(SESSION, f"bg-{number}")
        made.save(command(f"bg-{number}"))
        made.close()
    assert len(files.list_stored(SESSION)) == MAX_LISTED
    newest = next((tmp_path / "commands").rglob(f"bg-{MAX_LISTED + 4}.json"))
    newest.write_text("{")
    assert len(files.list_stored(SESSION)) == MAX_LISTED - 1
    files.remove(SESSION)
    assert files.list_stored(SESSION) == []

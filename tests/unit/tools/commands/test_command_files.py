"""The files of background commands, which outlive the command and its process."""

from pathlib import Path

from msgspec import structs

from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.commands import BackgroundCommand
from internal.tools.commands.command_files import MAX_KEPT_BYTES, MAX_LISTED, CommandFiles

SESSION = SessionId("session-1")


def command(number: int) -> BackgroundCommand:
    started = f"2026-11-29T10:00:{number:02}.000Z"
    return BackgroundCommand(f"bg-{number}", SESSION, RunId("run-1"), "serve", started, True)


def test_a_command_runs_until_its_process_lets_go_of_the_file(tmp_path: Path) -> None:
    files = CommandFiles(tmp_path)
    file = files.create(SESSION, "bg-1")
    file.save(command(1))
    file.write(b"up\n", b"up\n")
    [running] = files.list_stored(SESSION)
    assert (running.record.ended, running.output, running.end) == (None, b"up\n", "")
    file.close()  # as the kernel does for a process that was killed
    [killed] = files.list_stored(SESSION)
    assert killed.record.ended is not None
    assert (killed.output, killed.end) == (b"up\n", "[ended with Larkspur]")
    assert files.list_stored(SessionId("session-2")) == []
    files.remove(SESSION)
    assert files.list_stored(SESSION) == []


def test_output_and_the_number_of_commands_are_bounded(tmp_path: Path) -> None:
    files, line = CommandFiles(tmp_path), b"x" * 65_536
    for number in range(MAX_LISTED + 2):
        file = files.create(SESSION, f"bg-{number}")
        file.save(structs.replace(command(number), ended="2026-11-29T11:00:00.000Z"), "[stopped]")
        file.close()
    assert len(files.list_stored(SESSION)) == MAX_LISTED
    file, kept = files.create(SESSION, "bg-99"), bytearray()
    for _ in range(3 * MAX_KEPT_BYTES // len(line)):
        kept = (kept + line)[-MAX_KEPT_BYTES:]
        file.write(line, kept)
    file.close()
    assert (tmp_path / SESSION / "bg-99.log").stat().st_size <= 2 * MAX_KEPT_BYTES

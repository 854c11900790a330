"""`larkspur sessions`."""

from pathlib import Path

from tests.support.command_runner import CommandRunner


def test_session_is_listed_and_shown(run: CommandRunner) -> None:
    task = run.ask("what is 6*7")

    listed, shown = run.local("sessions"), run.local("sessions", "show", task["session_id"])

    assert listed.out.startswith(task["session_id"][-4:])
    assert "what is 6*7" in shown.out
    assert "42" in shown.out


def test_session_is_renamed_and_deleted(run: CommandRunner) -> None:
    session_id = run.ask("what is 6*7")["session_id"]

    assert run.local("sessions", "rename", session_id, "Sums").code == 0
    assert run.local("sessions", "--json").json[0]["title"] == "Sums"
    assert run.local("sessions", "rm", session_id).out == f"{session_id}\n"
    assert run.local("sessions", "--json").json == []


def test_export_does_not_overwrite_a_file(run: CommandRunner, tmp_path: Path) -> None:
    session_id = run.ask("what is 6*7")["session_id"]
    path = tmp_path / "session.md"

    assert run.local("sessions", "export", session_id, str(path)).code == 0
    assert "42" in path.read_text()
    again = run.local("sessions", "export", session_id, str(path))
    assert (again.code, "cannot be written" in again.message) == (1, True)

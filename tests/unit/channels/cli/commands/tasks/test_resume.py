"""`larkspur resume`."""

from internal.channels.cli.exit_codes import USAGE
from tests.support.command_runner import CommandRunner


def test_stopped_task_is_continued_in_its_session(run: CommandRunner) -> None:
    task = run.ask("ask me a question")
    run.local("stop", task["task_id"])

    resumed = run.local("resume", task["task_id"], "--output-format", "json")

    assert resumed.json["session_id"] == task["session_id"]
    assert resumed.json["task_id"] != task["task_id"]


def test_completed_task_is_not_continued(run: CommandRunner) -> None:
    task = run.ask("what is 6*7")
    assert run.local("resume", task["task_id"]).code == USAGE

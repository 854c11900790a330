"""`larkspur stop`."""

from tests.support.command_runner import CommandRunner


def test_waiting_task_is_stopped(run: CommandRunner) -> None:
    task = run.ask("ask me a question")

    stopped = run.local("stop", task["task_id"])

    assert (stopped.code, stopped.out) == (0, f"{task['task_id']}\n")
    assert run.local("tasks", "--json").json[0]["status"] == "cancelled"


def test_ended_task_is_not_stopped(run: CommandRunner) -> None:
    task = run.ask("what is 6*7")
    stopped = run.local("stop", task["task_id"])
    assert (stopped.code, stopped.message) == (2, f"{task['task_id']} has ended: completed.")

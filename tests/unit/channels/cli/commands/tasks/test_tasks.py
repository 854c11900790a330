"""`larkspur tasks`."""

from tests.support.command_runner import CommandRunner


def test_tasks_are_listed_newest_first(run: CommandRunner) -> None:
    first, second = run.ask("what is 6*7"), run.ask("hello")

    listed = run.local("tasks", "--json")

    assert [one["task_id"] for one in listed.json] == [second["task_id"], first["task_id"]]


def test_session_option_limits_the_list(run: CommandRunner) -> None:
    first, _ = run.ask("what is 6*7"), run.ask("hello")

    listed = run.local("tasks", "--session", first["session_id"])

    assert listed.out.count("\n") == 1
    assert listed.out.startswith(first["task_id"][-4:])

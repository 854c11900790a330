"""`larkspur say`."""

from internal.channels.cli.command_output import short_id
from tests.support.command_runner import CommandRunner


def test_ended_task_cannot_be_steered(run: CommandRunner) -> None:
    task = run.ask("what is 6*7")

    said = run.local("say", task["task_id"], "hurry")

    assert said.code == 2
    assert f"larkspur -r {short_id(task['session_id'])}" in said.message


def test_waiting_task_names_its_question(run: CommandRunner) -> None:
    task = run.ask("ask me a question")

    said = run.local("say", task["task_id"], "hurry")

    assert said.code == 2
    assert f"larkspur answer {short_id(task['questions'][0]['question_id'])}" in said.message

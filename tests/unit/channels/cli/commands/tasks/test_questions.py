"""`larkspur questions`."""

from internal.channels.cli.command_output import short_id
from tests.support.command_runner import CommandRunner


def test_open_question_is_listed_with_its_answer_command(run: CommandRunner) -> None:
    (question,) = run.ask("ask me a question")["questions"]

    listed = run.local("questions")

    assert listed.code == 0
    assert question["title"] in listed.out
    lines = listed.out.splitlines()
    assert any(
        one.startswith(f"  larkspur answer {short_id(question['question_id'])} ") for one in lines
    )


def test_answered_question_is_listed_with_all(run: CommandRunner) -> None:
    task = run.ask("ask me a question")
    run.local("stop", task["task_id"])

    assert run.local("questions", "--json").json == []
    assert len(run.local("questions", "--all", "--json").json) == 1

"""`larkspur feedback`."""

from pathlib import Path

from tests.support.command_runner import CommandRunner
from tests.support.database_files import execute

RATE = """
update tasks set feedback =
'{"rating":"up","comment":"short","by":"lark:cli_1:ou_1","at":"2026-11-22T10:00:00.000Z"}'
"""


def test_rated_answers_are_listed_with_the_comment(run: CommandRunner, home: Path) -> None:
    task = run.ask("ask me a question")
    assert run.local("feedback", "--json").json == []
    execute(home / "larkspur.db", RATE)
    [found] = run.local("feedback", "--json").json
    assert found["task_id"] == task["task_id"]
    assert (found["rating"], found["by"]) == ("up", "lark:cli_1:ou_1")
    assert "short" in run.local("feedback").out

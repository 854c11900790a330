"""`larkspur audit`."""

from tests.support.command_runner import CommandRunner


def test_entries_are_listed_newest_first(run: CommandRunner) -> None:
    task = run.ask("ask me a question")
    run.local("answer", task["questions"][0]["question_id"], "1")

    entries = run.local("audit", "--json").json

    assert [entry["action"] for entry in entries] == ["question.answered", "question.asked"]
    assert entries[0]["target"] == task["questions"][0]["question_id"]

"""`larkspur cost`."""

from tests.support.command_runner import CommandRunner


def test_tokens_are_summed_by_model(run: CommandRunner) -> None:
    task = run.ask("what is 6*7")

    (row,) = run.local("cost", "--by", "model", "--json").json

    assert row["output_tokens"] == task["usage"]["output_tokens"]


def test_text_has_one_line_per_key(run: CommandRunner) -> None:
    task = run.ask("what is 6*7")
    shown = run.local("cost", "--by", "session")
    assert shown.out.startswith(task["session_id"])
    assert shown.out.count("\n") == 1

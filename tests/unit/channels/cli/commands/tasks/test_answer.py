"""`larkspur answer`."""

from pathlib import Path

from tests.support.command_runner import CommandRunner


def test_answered_run_continues_in_this_process(run: CommandRunner) -> None:
    task = run.ask("ask me a question")

    answered = run.local(
        "answer", task["questions"][0]["question_id"], "1", "--output-format", "json"
    )

    assert answered.code == 0
    assert (answered.json["run_id"], answered.json["status"]) == (task["run_id"], "completed")


def test_second_answer_is_rejected(run: CommandRunner) -> None:
    (question,) = run.ask("ask me a question")["questions"]
    run.local("answer", question["question_id"], "1")

    late = run.local("answer", question["question_id"], "2")

    assert late.code == 2
    assert "Already answered by" in late.message


def test_missing_file_of_steps_is_a_usage_error(run: CommandRunner, tmp_path: Path) -> None:
    missing = str(tmp_path / "steps")
    answered = run.local("answer", "question-1", "edit", "--steps", missing)
    assert (answered.code, missing in answered.message) == (2, True)

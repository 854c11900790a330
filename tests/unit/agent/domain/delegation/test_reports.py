"""Reports about subtasks for the model."""

from internal.agent.domain.delegation.reports import (
    MAX_RESULT_CHARACTERS,
    SubtaskResult,
    describe_results,
    describe_status,
    end_message,
    report_prompt,
    subtask_prompt,
)
from internal.agent.domain.delegation.subtask import Subtask
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.tasks import Origin, Run, RunSpec, Status, StopReason, Task


def a_result(
    number: int,
    status: Status,
    stop: StopReason | None = None,
    *,
    answer: str = "",
    error: str = "",
    ended: str = "",
) -> SubtaskResult:
    task_id, session_id = TaskId(f"task-{number}"), SessionId("session-1")
    task = Task(
        task_id, session_id, "background", task_id, "dig", Origin("web", "local"), RunSpec(),
        status, "2026-01-31T08:00:00.000Z",
    )  # fmt: skip
    place = Subtask(TaskId("task-0"), RunId("run-0"), "c1", number, 3, "digger", "dig")
    run = Run(
        RunId(f"run-{number}"), task_id, session_id, task_id, status, 1, 1, stop_reason=stop,
        answer=answer, error=error, subtask=place, started="2026-01-31T08:00:01.000Z", ended=ended,
    )  # fmt: skip
    return SubtaskResult(task, run)


def test_a_status_is_one_line() -> None:
    running = a_result(2, "running")
    done = a_result(1, "completed", "final_answer", ended="2026-01-31T08:00:15.400Z")
    assert describe_status(running) == "task-2 (task 2 · digger): running"
    assert describe_status(done) == "task-1 (task 1 · digger): completed (final_answer) after 14 s"


def test_results_have_answers_errors_and_only_the_state_of_what_runs() -> None:
    text = describe_results(
        [
            a_result(1, "completed", "final_answer", answer="gold"),
            a_result(2, "failed", "error", answer="half", error="the shovel broke"),
            a_result(3, "running", answer="not yet"),
        ]
    )
    assert "gold" in text
    assert "Error: the shovel broke\nhalf" in text
    assert "not yet" not in text


def test_64_long_results_fit_into_one_text() -> None:
    results = [a_result(n, "completed", "final_answer", answer="x" * 5_000) for n in range(64)]
    assert len(describe_results(results)) < MAX_RESULT_CHARACTERS * 1.5


def test_messages_say_who_speaks() -> None:
    done = a_result(1, "completed", "final_answer", answer="gold")
    assert end_message(done).startswith("[A task that you created has ended.]\n## task-1")
    assert report_prompt([done]).startswith("[Background tasks of this conversation have ended.")
    assert subtask_prompt("dig", "shared").endswith("Do only this part:]\n\ndig")
    assert "git repository with a branch of its own" in subtask_prompt("dig", "worktree")

"""Texts about subtasks for the model and people."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from internal.agent.domain.artifacts import Artifact
from internal.agent.domain.delegation.subtask import WorkspaceChoice
from internal.agent.domain.tasks import ENDED, Run, Task
from internal.agent.domain.text import truncate, truncate_line

TASKS_CHANNEL = "tasks"
"""The channel of reports, and of messages that a run writes to its subtasks."""
TASK_ENDS_CHANNEL = "task-ends"
"""The channel on which a run learns that a subtask has ended, whose id is the message id."""

SUBTASK_NOTE = (
    "You do one part of a larger task for another agent. Nobody reads your steps: your final answer"
    " is all that it gets, together with the files that you write to output/. Make it complete, and"
    " name these files."
)
_FOLDER_NOTES: dict[WorkspaceChoice, str] = {
    "shared": "",
    "own": " Your folder is new and empty but for the files that you were given.",
    "worktree": " Your folder is a copy of a git repository with a branch of its own: what you"
    " change there is handed over, committed or not.",
}
REPORT_INSTRUCTION = "Report the background tasks that have ended."
REPORT_OPENING = (
    "[Background tasks of this conversation have ended. Tell the person the results as one answer"
    " to what they asked for; name the files, which are attached. Do not repeat the work.]"
)
END_OPENING = "[A task that you created has ended.]"
MAX_RESULT_CHARACTERS = 24_000
"""Characters of all results in one text together."""
_MIN_CHARACTERS = 300
POLLING_HINT = (
    "Nothing has changed. Do not ask again and again: do other work, or call `task_result`, which"
    " waits without any cost. You are told about each end anyway."
)


class SubtaskResult(NamedTuple):
    """A subtask, its run, and the files that it and its own subtasks made."""

    task: Task
    run: Run
    artifacts: Sequence[Artifact] = ()

    @property
    def has_ended(self) -> bool:
        """Whether it will not change any more."""
        return self.run.status in ENDED

    @property
    def path(self) -> str:
        """The display name in place of the id."""
        return self.run.place or self.task.id

    @property
    def preview(self) -> str:
        """The beginning of the answer or the error, on one line."""
        return truncate_line(self.run.error or self.run.answer, 300)


def run_seconds(run: Run) -> float | None:
    """Return the seconds from the start to the end of a run; None if it has not ended."""
    if not run.started or not run.ended:
        return None
    return (datetime.fromisoformat(run.ended) - datetime.fromisoformat(run.started)).total_seconds()


def describe_status(result: SubtaskResult) -> str:
    """Return one line about a subtask for the model."""
    run, seconds = result.run, run_seconds(result.run)
    state = f"{run.status} ({run.stop_reason})" if run.stop_reason else run.status
    took = f" after {seconds:.0f} s" if seconds is not None else ""
    return f"{result.task.id} ({result.path}): {state}{took}"


def describe_results(results: Sequence[SubtaskResult]) -> str:
    """Return the results of subtasks for the model; they share a limit of characters."""
    share = max(MAX_RESULT_CHARACTERS // max(len(results), 1), _MIN_CHARACTERS)
    return "\n\n".join(_describe_result(result, share) for result in results)


def _describe_result(result: SubtaskResult, share: int) -> str:
    lines = [f"## {describe_status(result)}"]
    if result.has_ended:
        if result.run.error:
            lines.append(f"Error: {truncate(result.run.error, share)}")
        if result.run.answer:
            lines.append(truncate(result.run.answer, share))
        lines += [f"File: {each.name} ({each.uri})" for each in result.artifacts]
    return "\n".join(lines)


def end_message(result: SubtaskResult) -> str:
    """Return the message to the model of a running creator when a subtask has ended."""
    return f"{END_OPENING}\n{describe_results([result])}"


def report_prompt(results: Sequence[SubtaskResult]) -> str:
    """Return the task of a run that reports ended subtasks to the person."""
    return f"{REPORT_OPENING}\n\n{describe_results(results)}"


def subtask_prompt(instruction: str, workspace: WorkspaceChoice) -> str:
    """Return the prompt for the model of a subtask."""
    return f"[{SUBTASK_NOTE}{_FOLDER_NOTES[workspace]} Do only this part:]\n\n{instruction}"

"""Results of subtasks, with the files of the subtasks below them."""

from collections.abc import Iterable

from internal.agent.domain.artifacts import Artifact
from internal.agent.domain.delegation.reports import SubtaskResult
from internal.agent.domain.events.types import TaskCompleted
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.text import truncate_json
from internal.agent.store.database import Read
from internal.agent.store.stores import Stores


def load_results(stores: Stores, task_ids: Iterable[TaskId]) -> Read[list[SubtaskResult]]:
    """Return the subtasks with these ids, in their order; unknown ones are left out."""
    found: list[SubtaskResult] = []
    for task_id in task_ids:
        task = yield from stores.tasks.get(task_id)
        run = yield from stores.runs.get_by_task(task_id)
        if task is not None and run is not None:
            artifacts = yield from list_artifacts(stores, run.id)
            found.append(SubtaskResult(task, run, artifacts))
    return found


def completed_event(result: SubtaskResult) -> TaskCompleted:
    """Return the event that the creator of a subtask, or its report, knows its end."""
    place = result.run.subtask
    return TaskCompleted(
        task_id=result.task.id,
        number=0 if place is None else place.number,
        status=result.run.status,
        stop_reason=result.run.stop_reason,
        preview=truncate_json(result.preview),
    )


def list_artifacts(stores: Stores, run_id: RunId) -> Read[list[Artifact]]:
    """Return the files that a run and the subtasks below it made, the last of each name."""
    found = yield from stores.artifacts.list_of_run(run_id)
    for run in (yield from stores.subtasks.list_of_run(run_id)):
        found += yield from list_artifacts(stores, run.id)
    return list({each.name: each for each in found}.values())

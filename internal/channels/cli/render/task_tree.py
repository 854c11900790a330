"""Tasks with their subtasks as rows. Standard library only."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from internal.channels.cli.command_output import short_ids
from internal.channels.cli.records import ListedSubtask, ListedTaskTree
from internal.i18n.quantities import format_cost, format_duration
from internal.normal_forms.time_zones import format_minute


def tree_rows(trees: Sequence[ListedTaskTree]) -> list[tuple[str, ...]]:
    """Return a row for each task and below it one for each subtask.

    The columns are id, creation, state, duration, cost, and the request.
    """
    ids = [one.item.task_id for one in trees]
    short = short_ids([*ids, *(one.task_id for tree in trees for one in tree.subtasks)])
    rows: list[tuple[str, ...]] = []
    for tree in trees:
        item = tree.item
        taken = _duration(tree.started_at, tree.completed_at)
        cost = format_cost(tree.cost) if tree.cost else ""
        when, state = format_minute(item.created), item.state
        rows.append((short[item.task_id], when, state, taken, cost, item.task))
        for depth, one in _below(tree.subtasks, item.task_id):
            taken = _duration(one.started_at, one.completed_at)
            cost = format_cost(one.cost) if one.cost else ""
            asked = f"{one.path}: {one.task}"
            name = f"{'  ' * depth}{short[one.task_id]}"
            rows.append((name, "", one.state, taken, cost, asked))
    return rows


def tree_json(tree: ListedTaskTree) -> dict[str, object]:
    """Return a task with its subtasks as JSON."""
    times = {"started_at": tree.started_at, "completed_at": tree.completed_at}
    subtasks = [one._asdict() for one in tree.subtasks]
    return {**tree.item._asdict(), **times, "total_cost": tree.cost, "subtasks": subtasks}


def _below(
    subtasks: Sequence[ListedSubtask], task_id: str, depth: int = 1
) -> Iterator[tuple[int, ListedSubtask]]:
    for one in subtasks:
        if one.parent_task_id == task_id:
            yield depth, one
            yield from _below(subtasks, one.task_id, depth + 1)


def _duration(started: str | None, completed: str | None) -> str:
    if started is None:
        return ""
    end = datetime.now(UTC) if completed is None else datetime.fromisoformat(completed)
    return format_duration((end - datetime.fromisoformat(started)).total_seconds())

"""Commands about the tasks of a chat and its conversation."""

from collections.abc import Sequence

from internal.agent.app.chats import ChatTask
from internal.agent.app.runs.visibility import Writing, written_at
from internal.agent.domain.answers import matches_id
from internal.agent.domain.errors import Conflict, Forbidden, NotFound, WrittenEarlier
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import ENDED, Run, Task
from internal.agent.domain.text import truncate_line
from internal.agent.ports.commands import COMMAND_ID_PREFIX
from internal.channels.chat.answers import CommandResult, escape_markdown
from internal.channels.chat.background_commands import stop_command
from internal.channels.chat.chat_settings import describe_isolation, describe_mode
from internal.channels.chat.command_context import (
    MAX_LISTED_TASKS,
    MAX_TASK_LENGTH,
    ChatContext,
    principal_for,
    show_text,
)
from internal.channels.chat.question_text import seconds_between, short_id
from internal.i18n.chat import ChatPhrases, find_switch

MAX_LISTED_SUBTASKS = 20
MAX_STATUS_LENGTH = 200
_RESUMABLE = frozenset({"failed", "cancelled"})


async def start_conversation(context: ChatContext, _argument: str) -> str:
    """Start a new session of the chat."""
    actor = context.actor
    await context.gateway.open_session(actor.principal, actor.via, scope=context.chat.scope)
    return context.phrases("new")


async def stop(context: ChatContext, argument: str) -> CommandResult:
    """Stop the active run of the chat, the named task, or all runs.

    A run that replies in this chat reports itself that it was stopped.
    """
    if argument.startswith(COMMAND_ID_PREFIX):
        return CommandResult(await stop_command(context, argument))
    stop_all = find_switch(argument) == "all"
    if argument and not stop_all:
        open_ = await _find_runs(context, argument)
    else:
        open_ = await context.list_unfinished()
    if stop_all:
        open_ = [*await _list_left_subtasks(context, open_), *open_]
    elif open_:
        open_ = [active_run(open_)]
    if not open_:
        return CommandResult(context.phrases("nothing_to_stop"))
    writing = None if argument and not stop_all else written_at(context.row)
    stopped: list[tuple[Run, Task]] = []
    results = list[str]()
    for run, task in reversed(open_):
        results.append(await _stop_task(context, task, writing))
        stopped += [(run, task)] if results[-1] == "stopping" else []
    if not stopped:
        return CommandResult(context.phrases(results[0]))
    if all(_replies_in(task, context.actor.chat) for _, task in stopped):
        return CommandResult(run_id=stopped[-1][0].id, stopped=True)
    if stop_all:
        return CommandResult(context.phrases("stopping_all", count=len(stopped)))
    return CommandResult(context.phrases("stopping"))


async def _stop_task(context: ChatContext, task: Task, writing: Writing) -> str:
    """Stop a task and return the key of the phrase for the result."""
    actor = context.actor
    try:
        principal = principal_for(task, actor.principal)
        await context.gateway.stop(task.id, principal, actor.via, writing=writing)
    except (NotFound, Forbidden):
        return "stop_not_allowed"
    except WrittenEarlier:
        return "written_before_task"
    except Conflict:
        return "nothing_to_stop"
    return "stopping"


async def resume(context: ChatContext, argument: str) -> CommandResult:
    """Resume the named or the newest failed or stopped task of the chat."""
    phrases, actor = context.phrases, context.actor
    ended = [task for task in await context.list_newest() if task.status in _RESUMABLE]
    found = (task for task in ended if not argument or matches_id(task.id, argument))
    if (task := next(found, None)) is None:
        return CommandResult(phrases("nothing_to_resume"))
    principal = principal_for(task, actor.principal)
    try:
        resumed = await context.gateway.resume(task.id, principal, actor.via, context.row)
    except (NotFound, Forbidden):
        return CommandResult(phrases("stop_not_allowed"))
    except Conflict as conflict:
        return CommandResult(str(conflict))
    return CommandResult(run_id=resumed.run_id, settled=True)


async def show_status(context: ChatContext, _argument: str) -> str:
    """Return the active work, the network access of commands, and the permission mode."""
    facts = describe_isolation(context), describe_mode(context)
    return "\n".join([await _work(context), *facts])


async def _work(context: ChatContext) -> str:
    """Describe the active work of the conversation."""
    phrases, open_ = context.phrases, await context.list_unfinished()
    lines = [_describe_active(open_, phrases)]
    if len(open_) > 1:
        lines.append(phrases("status_more", count=len(open_) - 1))
    via, scope = context.actor.via, context.chat.scope
    if subtasks := await context.gateway.chats.list_unfinished(via, scope, subtasks=True):
        command = phrases.command("tasks")
        lines.append(phrases("status_subtasks", count=len(subtasks), command=command))
    return "\n".join(lines)


def _describe_active(open_: Sequence[tuple[Run, Task]], phrases: ChatPhrases) -> str:
    if not open_:
        return phrases("idle")
    run, task = active_run(open_)
    summary = escape_markdown(truncate_line(task.instruction, MAX_STATUS_LENGTH))
    status = phrases.status(run.status, run.stop_reason)
    return phrases("status", status=status, task=summary)


async def list_tasks(context: ChatContext, _argument: str) -> str:
    """Return the newest tasks of the conversation with their subtasks."""
    phrases = context.phrases
    trees = await context.gateway.chats.list_trees(
        context.actor.via, context.chat.scope, MAX_LISTED_TASKS
    )
    if not trees:
        return phrases("no_tasks")
    now = context.row.received
    lines = [line for tree in trees for line in _format_tree(tree, phrases, now)]
    return phrases("tasks", tasks="\n".join(lines))


async def _list_left_subtasks(
    context: ChatContext, open_: Sequence[tuple[Run, Task]]
) -> list[tuple[Run, Task]]:
    """Return the unfinished subtasks that do not end with these tasks."""
    via, scope = context.actor.via, context.chat.scope
    found = await context.gateway.chats.list_unfinished(via, scope, subtasks=True)
    roots = {task.id for _, task in open_}
    return [
        (run, task)
        for run, task in found
        if run.subtask is not None and run.subtask.root_task_id not in roots
    ]


async def _find_runs(context: ChatContext, argument: str) -> list[tuple[Run, Task]]:
    """Return the unfinished runs of the chat's tasks with that id, else the task itself."""
    open_ = await context.gateway.chats.list_unfinished_in(context.actor.chat)
    if found := [each for each in open_ if matches_id(each[1].id, argument)]:
        return found
    named = await context.gateway.chats.find_run(argument)
    if named is None or named[1].origin.chat_id != context.chat.chat_id:
        return []
    return [named]


def _replies_in(task: Task, chat: str) -> bool:
    """Return True if the run of a task replies in a chat."""
    return task.origin.chat == chat and not task.is_subtask


def active_run(open_: Sequence[tuple[Run, Task]]) -> tuple[Run, Task]:
    """Return the run that is not queued, else the first; one in the background comes last."""
    return min(open_, key=lambda each: (each[0].lane != each[0].session_id, _is_queued(each[0])))


def _is_queued(run: Run) -> bool:
    return run.status == "queued"


def _format_tree(tree: ChatTask, phrases: ChatPhrases, now: str) -> list[str]:
    """Return the lines of a task and its subtasks, preferring unfinished ones if too many."""
    task, run = tree.task, tree.run
    shown = _below(tree.subtasks, run.id)
    if len(shown) > MAX_LISTED_SUBTASKS:
        kept = sorted(shown, key=lambda each: each.status in ENDED)[:MAX_LISTED_SUBTASKS]
        shown = [each for each in shown if each in kept]
    lines = [
        phrases(
            "task_line",
            id=short_id(task.id),
            status=phrases.status(
                task.status, task.stop_reason, tree.calls_not_run.get(task.id, 0)
            ),
            took=_format_duration(run, phrases, now),
            task=show_text(task.instruction, MAX_TASK_LENGTH),
        )
    ]
    for each in shown:
        place = each.subtask
        if place is None:
            continue
        line = phrases(
            "task_subtask_line",
            id=short_id(each.task_id),
            task=show_text(phrases.subtask(place.path), MAX_STATUS_LENGTH),
            status=phrases.status(
                each.status, each.stop_reason, tree.calls_not_run.get(each.task_id, 0)
            ),
            took=_format_duration(each, phrases, now),
            preview=show_text(place.preview, MAX_TASK_LENGTH),
        )
        lines.append(f"{'    ' * place.depth}{line}")
    if more := len(tree.subtasks) - len(shown):
        lines.append(f"    {phrases('task_subtasks_more', count=more)}")
    return lines


def _below(runs: Sequence[Run], parent: RunId) -> list[Run]:
    """Return the runs below a run, in depth-first order."""
    own = [run for run in runs if run.parent_run_id == parent]
    return [each for run in own for each in (run, *_below(runs, run.id))]


def _format_duration(run: Run, phrases: ChatPhrases, now: str) -> str:
    """Return how long a run has taken so far, "" if it has not started."""
    seconds = seconds_between(run.started, run.ended or now)
    return "" if seconds is None else phrases("task_took", took=phrases.duration(seconds))

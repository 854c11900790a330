"""Carry out commands."""

from collections.abc import Sequence

import msgspec

from internal.agent.app.chats import ChatTask
from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.visibility import Writing, written_at
from internal.agent.app.task_options import TaskDefaults
from internal.agent.capabilities.instructions.chat_instructions import ChatInstructions
from internal.agent.domain.answers import matches_id
from internal.agent.domain.errors import Conflict, Forbidden, NotFound, WrittenEarlier
from internal.agent.domain.ids import RunId
from internal.agent.domain.principals import Principal
from internal.agent.domain.tasks import ENDED, Run, Task
from internal.agent.domain.text import escape_hidden, truncate_line
from internal.agent.ports.commands import COMMAND_ID_PREFIX, BackgroundCommand
from internal.channels.chat.answers import (
    CommandResult,
    MessageContext,
    TextAnswers,
    escape_markdown,
)
from internal.channels.chat.chat_settings import SettingsCommands
from internal.channels.chat.command_parser import (
    ChatCommand,
    UnknownCommand,
    format_help,
    is_help_word,
    is_stop_word,
)
from internal.channels.chat.policy import ChatUsers
from internal.channels.chat.question_text import seconds_between, short_id
from internal.i18n.chat import ChatPhrases, find_switch

MAX_LISTED_TASKS, MAX_LISTED_SUBTASKS = 10, 20
MAX_LISTED_SKILLS = 30
MAX_STATUS_LENGTH, MAX_TASK_LENGTH, MAX_SKILL_LENGTH = 200, 100, 150
_RESUMABLE = frozenset({"failed", "cancelled"})


_MAX_SHOWN_COMMANDS = 5
"""Background commands whose last lines are shown, the newest ones."""
_MAX_OUTPUT_LINES = 5


class CommandHandlers:
    """One method for each command."""

    def __init__(
        self,
        gateway: Gateway,
        people: ChatUsers,
        answers: TextAnswers,
        *,
        defaults: TaskDefaults,
        instructions: ChatInstructions,
    ) -> None:
        self._gateway, self._answers = gateway, answers
        self._settings_commands = SettingsCommands(
            gateway, people, defaults=defaults, instructions=instructions
        )

    async def handle(
        self, command: ChatCommand | UnknownCommand, message: MessageContext
    ) -> CommandResult:
        """Carry out a command and return its result."""
        match command:
            case UnknownCommand():
                sentence = _suggest(command, message.phrases)
                return CommandResult(f"{sentence}\n\n{self._help(message)}")
            case ChatCommand("approve" | "reject" | "resume" | "stop" as name, argument):
                carry_out = {
                    "approve": self._answers.approve,
                    "reject": self._answers.reject,
                    "resume": self._resume,
                    "stop": self._stop,
                }
                return await carry_out[name](argument, message)
            case ChatCommand(
                "plan" | "model" | "network" | "profile" | "instructions" | "pair" | "usage"
            ):
                return CommandResult(await self._settings_commands.handle(command, message))
            case ChatCommand():
                return CommandResult(await self._reply(command, message))

    async def stop_by_word(self, text: str, message: MessageContext) -> CommandResult | None:
        """Stop the active run of the conversation if the text is only a word such as `stop`.

        Returns None for other texts, if nothing is active, and if an open question offers the word.
        """
        if not is_stop_word(text) or not await self._list_unfinished(message):
            return None
        questions = await self._gateway.queries.open_questions(message.actor.chat)
        if any(is_stop_word(option) for each in questions for option in each.question.options):
            return None
        return await self._stop("", message)

    def help_by_word(self, text: str, message: MessageContext) -> CommandResult | None:
        """Return the help if the text is only a word such as `help`.

        Returns None for other texts, and if an open question offers the word.
        """
        questions = message.facts.questions
        options = (option for each in questions for option in each.question.options)
        if not is_help_word(text) or any(map(is_help_word, options)):
            return None
        return CommandResult(self._help(message))

    async def _reply(self, command: ChatCommand, message: MessageContext) -> str:
        match command:
            case ChatCommand("new"):
                return await self._new(message)
            case ChatCommand("status" | "tasks" | "ps" | "skills" | "mcp" as name):
                lists = {
                    "status": self._status,
                    "tasks": self._tasks,
                    "ps": self._list_commands,
                    "skills": self._list_skills,
                    "mcp": self._list_mcp_servers,
                }
                return await lists[name](message)
            case ChatCommand("questions"):
                return await self._answers.list_open(message)
            case _:
                return self._help(message)

    def _help(self, message: MessageContext) -> str:
        return format_help(message.phrases, busy_mode=message.rules.busy_mode)

    async def _new(self, message: MessageContext) -> str:
        actor = message.actor
        await self._gateway.open_session(actor.principal, actor.via, scope=message.chat.scope)
        return message.phrases("new")

    async def _stop(self, argument: str, message: MessageContext) -> CommandResult:
        """Stop the active run of the chat, the named task, or all runs.

        A run that replies in this chat says itself that it was stopped.
        """
        if argument.startswith(COMMAND_ID_PREFIX):
            return CommandResult(await self._stop_command(argument, message))
        stop_all = find_switch(argument) == "all"
        if argument and not stop_all:
            open_ = await self._find_runs(argument, message)
        else:
            open_ = await self._list_unfinished(message)
        if stop_all:
            open_ = [*await self._list_left_subtasks(open_, message), *open_]
        elif open_:
            open_ = [active_run(open_)]
        if not open_:
            return CommandResult(message.phrases("nothing_to_stop"))
        writing = None if argument and not stop_all else written_at(message.row)
        stopped: list[tuple[Run, Task]] = []
        results = list[str]()
        for run, task in reversed(open_):
            results.append(await self._stop_task(task, message, writing))
            stopped += [(run, task)] if results[-1] == "stopping" else []
        if not stopped:
            return CommandResult(message.phrases(results[0]))
        if all(_replies_in(task, message.actor.chat) for _, task in stopped):
            return CommandResult(run_id=stopped[-1][0].id, stopped=True)
        if stop_all:
            return CommandResult(message.phrases("stopping_all", count=len(stopped)))
        return CommandResult(message.phrases("stopping"))

    async def _stop_task(self, task: Task, message: MessageContext, writing: Writing) -> str:
        """Stop a task and return the key of the phrase for the result."""
        actor = message.actor
        try:
            principal = principal_for(task, actor.principal)
            await self._gateway.stop(task.id, principal, actor.via, writing=writing)
        except (NotFound, Forbidden):
            return "stop_not_allowed"
        except WrittenEarlier:
            return "written_before_task"
        except Conflict:
            return "nothing_to_stop"
        return "stopping"

    async def _resume(self, argument: str, message: MessageContext) -> CommandResult:
        """Resume the named or the newest failed or stopped task of the chat."""
        phrases, actor = message.phrases, message.actor
        ended = [task for task in await self._list_newest(message) if task.status in _RESUMABLE]
        found = (task for task in ended if not argument or matches_id(task.id, argument))
        if (task := next(found, None)) is None:
            return CommandResult(phrases("nothing_to_resume"))
        principal = principal_for(task, actor.principal)
        try:
            resumed = await self._gateway.resume(task.id, principal, actor.via, message.row)
        except (NotFound, Forbidden):
            return CommandResult(phrases("stop_not_allowed"))
        except Conflict as conflict:
            return CommandResult(str(conflict))
        return CommandResult(run_id=resumed.run_id, settled=True)

    async def _status(self, message: MessageContext) -> str:
        settings = self._settings_commands
        facts = settings.describe_isolation(message), settings.describe_mode(message)
        return "\n".join([await self._work(message), *facts])

    async def _work(self, message: MessageContext) -> str:
        """Return what runs in the conversation."""
        phrases, open_ = message.phrases, await self._list_unfinished(message)
        lines = [self._describe_active(open_, phrases)]
        if len(open_) > 1:
            lines.append(phrases("status_more", count=len(open_) - 1))
        via, scope = message.actor.via, message.chat.scope
        if subtasks := await self._gateway.chats.list_unfinished(via, scope, subtasks=True):
            command = phrases.command("tasks")
            lines.append(phrases("status_subtasks", count=len(subtasks), command=command))
        return "\n".join(lines)

    def _describe_active(self, open_: Sequence[tuple[Run, Task]], phrases: ChatPhrases) -> str:
        if not open_:
            return phrases("idle")
        run, task = active_run(open_)
        summary = escape_markdown(truncate_line(task.instruction, MAX_STATUS_LENGTH))
        status = phrases.status(run.status, run.stop_reason)
        return phrases("status", status=status, task=summary)

    async def _tasks(self, message: MessageContext) -> str:
        phrases = message.phrases
        trees = await self._gateway.chats.list_trees(
            message.actor.via, message.chat.scope, MAX_LISTED_TASKS
        )
        if not trees:
            return phrases("no_tasks")
        now = message.row.received
        lines = [line for tree in trees for line in _format_tree(tree, phrases, now)]
        return phrases("tasks", tasks="\n".join(lines))

    async def _list_commands(self, message: MessageContext) -> str:
        phrases, newest = message.phrases, await self._list_newest(message)
        if not newest:
            return phrases("no_commands")
        principal = principal_for(newest[0], message.actor.principal)
        try:
            found = await self._gateway.commands.list_all(newest[0].session_id, principal)
        except NotFound:  # the conversation of others
            found = []
        if not found:
            return phrases("no_commands")
        lines: list[str] = []
        for one in found:
            status = _command_status(one, phrases)
            command = escape_markdown(truncate_line(one.command, MAX_TASK_LENGTH))
            lines.append(phrases("command_line", id=one.id, status=status, command=command))
            if one.address:
                lines.append(phrases("command_address", address=escape_markdown(one.address)))
        for one in found[-_MAX_SHOWN_COMMANDS:]:
            output = await self._gateway.commands.read(newest[0].session_id, one.id, principal)
            if last := output.text.splitlines()[-_MAX_OUTPUT_LINES:]:
                shown = (escape_markdown(truncate_line(line, MAX_TASK_LENGTH)) for line in last)
                text = "\n".join(f"> {line}" for line in shown)
                lines.append(phrases("command_output", id=one.id, output=text))
        return phrases("commands", commands="\n".join(lines))

    async def _list_skills(self, message: MessageContext) -> str:
        phrases = message.phrases
        found = await self._gateway.skills.list_all(message.actor.principal)
        if not found:
            return phrases("no_skills")
        lines = [
            phrases(
                "skill_line",
                name=escape_hidden(each.name),
                state=phrases(f"skill_{each.state.replace(' ', '_')}"),
                description=_shown(each.description, MAX_SKILL_LENGTH),
            ).rstrip()
            for each in found[:MAX_LISTED_SKILLS]
        ]
        if more := len(found) - len(lines):
            lines.append(phrases("skills_more", count=more))
        skills = phrases("skills", skills="\n".join(lines))
        if all(each.state == "offered" for each in found):
            return skills
        return f"{skills}\n\n{phrases('skills_withheld')}"

    async def _list_mcp_servers(self, message: MessageContext) -> str:
        phrases = message.phrases
        listed = await self._gateway.mcp.list_all(message.actor.principal)
        found = [each for each in listed if each.name]
        if not found:
            return phrases("no_mcp_servers")
        lines = [
            phrases(
                "mcp_line",
                name=escape_hidden(each.name),
                state=phrases(f"mcp_{each.state.replace(' ', '_')}"),
                count=each.tools,
            )
            for each in found
        ]
        lines += [f"- {escape_markdown(each)}" for one in found for each in one.warnings]
        servers = phrases("mcp_servers", servers="\n".join(lines))
        if all(each.state in {"offered", "disabled"} for each in found):
            return servers
        return f"{servers}\n\n{phrases('mcp_withheld')}"

    async def _stop_command(self, command_id: str, message: MessageContext) -> str:
        newest = await self._list_newest(message)
        try:
            task = newest[0]
            principal = principal_for(task, message.actor.principal)
            await self._gateway.commands.stop(task.session_id, command_id, principal)
        except (IndexError, NotFound):
            return message.phrases("nothing_to_stop")
        return message.phrases("command_stopped", id=command_id)

    async def _list_newest(self, message: MessageContext) -> list[Task]:
        """Return the last tasks of the chat's current session, newest first."""
        scope = message.chat.scope
        return await self._gateway.chats.list_newest(message.actor.via, scope, MAX_LISTED_TASKS)

    async def _list_unfinished(self, message: MessageContext) -> list[tuple[Run, Task]]:
        return await self._gateway.chats.list_unfinished(message.actor.via, message.chat.scope)

    async def _list_left_subtasks(
        self, open_: Sequence[tuple[Run, Task]], message: MessageContext
    ) -> list[tuple[Run, Task]]:
        """Return the unfinished subtasks that do not end with these tasks."""
        via, scope = message.actor.via, message.chat.scope
        found = await self._gateway.chats.list_unfinished(via, scope, subtasks=True)
        roots = {task.id for _, task in open_}
        return [
            (run, task)
            for run, task in found
            if run.subtask is not None and run.subtask.root_task_id not in roots
        ]

    async def _find_runs(self, argument: str, message: MessageContext) -> list[tuple[Run, Task]]:
        """Return the unfinished runs of the chat's tasks with that id, else the task itself."""
        open_ = await self._gateway.chats.list_unfinished_in(message.actor.chat)
        if found := [each for each in open_ if matches_id(each[1].id, argument)]:
            return found
        named = await self._gateway.chats.find_run(argument)
        if named is None or named[1].origin.chat_id != message.chat.chat_id:
            return []
        return [named]


def _command_status(command: BackgroundCommand, phrases: ChatPhrases) -> str:
    if command.ended is None:
        return phrases("command_runs")
    if command.exit_code is None or command.exit_code < 0:
        return phrases("command_is_over")
    return phrases("command_ended", code=command.exit_code)


def _shown(text: str, max_chars: int) -> str:
    """Return Markdown that shows the beginning of a foreign text on one line."""
    return escape_markdown(escape_hidden(truncate_line(text, max_chars)))


def _replies_in(task: Task, chat: str) -> bool:
    """Return True if the run of a task replies in a chat."""
    return task.origin.chat == chat and not task.is_subtask


def active_run(open_: Sequence[tuple[Run, Task]]) -> tuple[Run, Task]:
    """Return the run that is not queued, else the first; one in the background comes last."""
    return min(open_, key=lambda each: (each[0].lane != each[0].session_id, _is_queued(each[0])))


def _is_queued(run: Run) -> bool:
    return run.status == "queued"


def _format_tree(tree: ChatTask, phrases: ChatPhrases, now: str) -> list[str]:
    """Return a task and below it its subtasks, those that have not ended first of all."""
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
            task=_shown(task.instruction, MAX_TASK_LENGTH),
        )
    ]
    for each in shown:
        place = each.subtask
        if place is None:
            continue
        line = phrases(
            "task_subtask_line",
            id=short_id(each.task_id),
            task=_shown(phrases.subtask(place.path), MAX_STATUS_LENGTH),
            status=phrases.status(
                each.status, each.stop_reason, tree.calls_not_run.get(each.task_id, 0)
            ),
            took=_format_duration(each, phrases, now),
            preview=_shown(place.preview, MAX_TASK_LENGTH),
        )
        lines.append(f"{'    ' * place.depth}{line}")
    if more := len(tree.subtasks) - len(shown):
        lines.append(f"    {phrases('task_subtasks_more', count=more)}")
    return lines


def _below(runs: Sequence[Run], parent: RunId) -> list[Run]:
    """Return the runs below a run, each one followed by those below it."""
    own = [run for run in runs if run.parent_run_id == parent]
    return [each for run in own for each in (run, *_below(runs, run.id))]


def _format_duration(run: Run, phrases: ChatPhrases, now: str) -> str:
    """Return how long a run has taken so far, "" if it has not started."""
    seconds = seconds_between(run.started, run.ended or now)
    return "" if seconds is None else phrases("task_took", took=phrases.duration(seconds))


def principal_for(task: Task, principal: Principal) -> Principal:
    """Return the principal; an operator of the chat has the owner's rights to its tasks."""
    if not principal.may("operate") or task.origin.principal == principal.id:
        return principal
    return msgspec.structs.replace(principal, roles=principal.roles | {"owner"})


def _suggest(unknown: UnknownCommand, phrases: ChatPhrases) -> str:
    if unknown.nearest:
        return phrases("unknown_command", command=unknown.word, nearest=unknown.nearest)
    return phrases("no_such_command", command=unknown.word)

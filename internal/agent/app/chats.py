"""Chats and their tasks, as the chat channels read and write them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from internal.agent.domain.chats import (
    ChatSettings,
)
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.tasks import (
    Channel,
    Run,
    Status,
    Task,
    TaskFilter,
)
from internal.agent.domain.usage import UsageSum
from internal.agent.store.database import Database, Read
from internal.agent.store.stores import Stores
from internal.agent.store.tasks import list_calls_not_run

_UNFINISHED: tuple[Status, ...] = ("running", "queued", "waiting")
_MAX_TASKS = 500


def find_unfinished(
    stores: Stores, is_wanted: Callable[[Task], bool]
) -> Read[list[tuple[Run, Task]]]:
    """Return the unfinished runs of the tasks that are wanted."""
    found: list[tuple[Run, Task]] = []
    for status in _UNFINISHED:
        page = stores.tasks.list_page(
            None, TaskFilter(status=status, subtasks=True), before=None, limit=_MAX_TASKS
        )
        for task in (yield from page):
            run = (yield from stores.runs.get_by_task(task.id)) if is_wanted(task) else None
            if run is not None:
                found.append((run, task))
    return found


class ChatTask(NamedTuple):
    """A task of a conversation with its newest run and the runs of all subtasks below it.

    `calls_not_run` counts the last calls of the runs that ended without running them.
    """

    task: Task
    run: Run
    subtasks: list[Run]
    calls_not_run: Mapping[TaskId, int] = {}


def find_persons_task(stores: Stores, task: Task) -> Read[Task]:
    """Return the person's task behind a subtask or a report."""
    while above := task.parent_task_id or next(iter(task.reports), None):
        found = yield from stores.tasks.get(above)
        if found is None:
            break
        task = found
    return task


class KnownMessage(NamedTuple):
    """Facts about a message: whether the bot sent it, and as the answer of a run.

    `in_session`: it was taken into the current session, or is an answer of it.
    """

    is_own: bool = False
    is_answer: bool = False
    in_session: bool = False


class KnownMessages(NamedTuple):
    """Whether a conversation has a session, and the facts about messages, by their ids."""

    has_session: bool
    messages: Mapping[str, KnownMessage]


class Chats:
    """Reads and writes by chat; the channel checks the rights of the user."""

    def __init__(self, database: Database, stores: Stores) -> None:
        self._database, self._stores = database, stores

    async def get_settings(self, chat: str) -> ChatSettings:
        """Return the settings for the tasks of a chat."""
        return await self._database.read(
            partial(self._stores.chats.get_settings, chat), is_short=True
        )

    async def save_settings(self, chat: str, settings: ChatSettings) -> None:
        """Replace the settings of a chat."""
        await self._database.write(partial(self._stores.chats.save_settings, chat, settings))

    async def list_newest(self, channel: Channel, scope: str, limit: int) -> list[Task]:
        """Return the newest tasks of the current session of a scope, without subtasks."""
        return [each.task for each in await self.list_trees(channel, scope, limit)]

    async def list_trees(self, channel: Channel, scope: str, limit: int) -> list[ChatTask]:
        """Return the newest tasks of the current session of a scope with their subtasks."""
        stores = self._stores

        def work() -> Read[list[ChatTask]]:
            found: list[ChatTask] = []
            session = yield from stores.sessions.get_current(channel, scope)
            if session is None:
                return found
            wanted = TaskFilter(session_id=session.id)
            tasks = yield from stores.tasks.list_page(None, wanted, before=None, limit=limit)
            for task in tasks:
                run = yield from stores.runs.get_by_task(task.id)
                if run is not None:
                    subtasks = yield from stores.subtasks.list_tree(task.id)
                    ended = [each.task_id for each in (run, *subtasks) if each.ended]
                    missed = yield from list_calls_not_run(ended)
                    found.append(ChatTask(task, run, subtasks, missed))
            return found

        return await self._database.read(work)

    async def get_usage(self, channel: Channel, scope: str) -> UsageSum | None:
        """Return the usage of the current session of a scope; None without usage."""
        stores = self._stores

        def work() -> Read[UsageSum | None]:
            session = yield from stores.sessions.get_current(channel, scope)
            if session is None:
                return None
            sums = yield from stores.usage.sum_by("session", session.id, None, limit=1)
            return sums[0] if sums else None

        return await self._database.read(work)

    async def list_unfinished(
        self, channel: Channel, scope: str, *, subtasks: bool = False
    ) -> list[tuple[Run, Task]]:
        """Return the unfinished runs of the current session of a scope, oldest first.

        With `subtasks` only the runs of subtasks, otherwise all others.
        """
        stores = self._stores

        def work() -> Read[list[tuple[Run, Task]]]:
            found: list[tuple[Run, Task]] = []
            session = yield from stores.sessions.get_current(channel, scope)
            runs = [] if session is None else (yield from stores.runs.list_unfinished(session.id))
            for run in runs:
                task = yield from stores.tasks.get(run.task_id)
                if task is not None and task.is_subtask == subtasks:
                    found.append((run, task))
            return found

        return await self._database.read(work)

    async def list_unfinished_in(self, chat: str) -> list[tuple[Run, Task]]:
        """Return the unfinished runs of all conversations of a chat; see `Origin.chat`.

        Those of subtasks come last: they end with the task above them.
        """
        find = partial(find_unfinished, self._stores, lambda task: task.origin.chat == chat)
        found = await self._database.read(find)
        return sorted(found, key=lambda each: each[1].is_subtask)

    async def list_known(
        self, channel: Channel, app: str, scope: str, message_ids: Sequence[str]
    ) -> KnownMessages:
        """Return the stored facts about messages of a chat.

        The session is the current one of the scope, which a message of that scope continues.
        """
        stores = self._stores

        def work() -> Read[KnownMessages]:
            session = yield from stores.sessions.get_current(channel, scope)
            current = "" if session is None else session.id
            found: dict[str, KnownMessage] = {}
            for message_id in message_ids:
                sent = yield from stores.outbox.get_sent(channel, app, message_id)
                if sent is None:
                    taken = yield from stores.inbox.get_session(channel, app, message_id)
                else:
                    taken = sent.session_id
                is_answer = sent is not None and not sent.question_id and bool(sent.session_id)
                is_known = bool(taken) and taken == current
                found[message_id] = KnownMessage(sent is not None, is_answer, is_known)
            return KnownMessages(bool(current), found)

        return await self._database.read(work)

    async def add_direct(self, channel: Channel, app: str, chat_id: str, person: str) -> None:
        """Store that a chat is the direct one of a person, a principal."""
        add = partial(self._stores.contacts.add, channel, app, chat_id, person)
        await self._database.write(add)

    async def find_direct(self, channel: Channel, app: str, person: str) -> str:
        """Return the id of the direct chat of a person, "" if it is unknown."""
        find = partial(self._stores.contacts.find_direct, channel, app, person)
        return await self._database.read(find, is_short=True)

    async def count_bot_turn(self, channel: Channel, app: str, chat_id: str) -> int:
        """Count a message of a bot; return how many came since the last one of a person."""
        count = partial(self._stores.contacts.count_bot_turn, channel, app, chat_id)
        return await self._database.write(count)

    async def end_bot_turns(self, channel: Channel, app: str, chat_id: str) -> None:
        """Store that a person wrote to a chat."""
        end = partial(self._stores.contacts.end_bot_turns, channel, app, chat_id)
        await self._database.write(end)

    async def get_current_scope(self, session_id: SessionId) -> str:
        """Return the scope of a session if it is the current one there, else ""."""
        sessions = self._stores.sessions

        def work() -> Read[str]:
            session = yield from sessions.get(session_id)
            if session is None or not session.scope:
                return ""
            current = yield from sessions.get_current(session.channel, session.scope)
            return session.scope if current is not None and current.id == session_id else ""

        return await self._database.read(work)

    async def find_run(self, name: str) -> tuple[Run, Task] | None:
        """Return the run with that id, or the newest run of the task with that id."""
        stores = self._stores

        def work() -> Read[tuple[Run, Task] | None]:
            run = yield from stores.runs.get(RunId(name))
            if run is None:
                run = yield from stores.runs.get_by_task(TaskId(name))
            task = None if run is None else (yield from stores.tasks.get(run.task_id))
            return None if run is None or task is None else (run, task)

        return await self._database.read(work)

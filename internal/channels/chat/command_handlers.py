"""Obeying: what a command does, and what is said about it."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from internal.agent.app.gateway import Gateway
from internal.agent.domain.errors import Conflict, Forbidden, NotFound
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.tasks import Run, Session, Task
from internal.agent.domain.text import truncate_line
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.channels.chat.chat_settings import Wishing
from internal.channels.chat.command_parser import Command, Unknown, help_text
from internal.channels.chat.policy import ChatRules
from internal.channels.chat.text_answers import Deciding, Did, Place, Speaker, names, short
from internal.channels.lark.directory import People
from internal.i18n.chat import ChatPhrases, find_switch

_MOST_LISTED = 10
_OVER = frozenset({"failed", "cancelled"})


class Said(NamedTuple):
    """A command as it was said: by whom, and where."""

    speaker: Speaker
    place: Place

    @property
    def words(self) -> ChatPhrases:
        """The language of the answer."""
        return self.speaker.words

    @property
    def principal(self) -> Principal:
        """Who said it."""
        return self.speaker.answerer.principal

    def principal_for(self, task: Task) -> Principal:
        """Return who said it, with the rights that an operator of the chat has to its task."""
        principal = self.principal
        if not principal.may("operate") or task.origin.principal == principal.id:
            return principal
        return msgspec.structs.replace(principal, roles=principal.roles | {"owner"})


class Obeying:
    """Does what commands say, in the conversation of a chat."""

    def __init__(
        self,
        gateway: Gateway,
        database: Database,
        stores: Stores,
        rules: ChatRules,
        people: People,
    ) -> None:
        self._gateway, self._database, self._stores = gateway, database, stores
        self._rules = rules
        self.deciding = Deciding(gateway, database, stores, people)
        self.wishing = Wishing(gateway, database, stores, rules, people)

    async def obey(self, command: Command | Unknown, said: Said) -> Did:
        """Do it and return what became of it."""
        match command:
            case Unknown():
                return Did(_corrected(command, said.words))
            case Command("approve", wanted):
                return await self.deciding.approve(wanted, said.speaker)
            case Command("reject", wanted):
                return await self.deciding.reject(wanted, said.speaker)
            case Command("resume", wanted):
                return await self._resume(said, wanted)
            case Command("plan" | "model" | "pair" | "usage"):
                return Did(await self.wishing.obey(command, said.speaker, said.place))
            case Command():
                return Did(await self._told(command, said))

    async def _told(self, command: Command, said: Said) -> str:
        """Do what is answered with a sentence."""
        match command:
            case Command("new"):
                return await self._new(said)
            case Command("stop", wanted):
                return await self._stop(said, wanted)
            case Command("status"):
                return await self._status(said)
            case Command("tasks"):
                return await self._tasks(said)
            case Command("questions"):
                return await self.deciding.listed(said.speaker)
            case _:
                mode = self._rules.busy_mode_in(said.place.chat_id)
                return help_text(said.words, busy_mode=mode)

    async def _new(self, said: Said) -> str:
        await self._gateway.open_session(said.principal, "lark", scope=said.place.scope)
        return said.words("new")

    async def _stop(self, said: Said, wanted: str) -> str:
        """Stop the run at work in the chat, the task that is named, or all."""
        words, place, every = said.words, said.place, find_switch(wanted) == "all"
        named = wanted and not every
        open_ = await (self._named(place, wanted) if named else self._open(place))
        if not open_:
            return words("nothing_to_stop")
        if not every:
            return words(await self._stop_one(said, *_at_work(open_)))
        ends = [await self._stop_one(said, *each) for each in reversed(open_)]
        stopped = ends.count("stopping")
        return words("stopping_all", count=stopped) if stopped else words(ends[0])

    async def _stop_one(self, said: Said, run: Run, task: Task) -> str:
        """Stop a run and return the name of the phrase that says what became of it."""
        try:
            await self._gateway.stop(run.task_id, said.principal_for(task), "lark")
        except (NotFound, Forbidden):
            return "not_yours"
        except Conflict:
            return "nothing_to_stop"
        return "stopping"

    async def may_stop(self, principal: Principal, place: Place) -> bool:
        """Say whether somebody may stop what is at work in a chat."""
        if principal.may("operate"):
            return True
        open_ = await self._open(place)
        return not open_ or _at_work(open_)[1].origin.principal == principal.id

    async def _resume(self, said: Said, wanted: str) -> Did:
        """Go on where a failed or stopped task of the chat ended, by default the last one."""
        words = said.words
        ended = [each for each in await self._newest(said.place) if each.status in _OVER]
        task = next((each for each in ended if not wanted or names(each.id, wanted)), None)
        if task is None:
            return Did(words("nothing_to_resume"))
        try:
            resumed = await self._gateway.resume(
                task.id, said.principal_for(task), "lark", said.speaker.row
            )
        except (NotFound, Forbidden):
            return Did(words("not_yours"))
        except Conflict as conflict:
            return Did(str(conflict))
        return Did(run_id=resumed.run_id, settled=True)

    async def _status(self, said: Said) -> str:
        words, open_ = said.words, await self._open(said.place)
        if not open_:
            return words("idle")
        run, task = _at_work(open_)
        status = words(
            "status", status=words.status(run.status), task=truncate_line(task.instruction, 200)
        )
        more = words("status_more", count=len(open_) - 1) if len(open_) > 1 else ""
        return f"{status}\n{more}".strip()

    async def _tasks(self, said: Said) -> str:
        words, tasks = said.words, await self._newest(said.place)
        if not tasks:
            return words("no_tasks")
        lines = (
            words(
                "task_line",
                id=short(task.id),
                status=words.status(task.status),
                task=truncate_line(task.instruction, 100),
            )
            for task in tasks
        )
        return words("tasks", tasks="\n".join(lines))

    async def _session(self, place: Place) -> Session | None:
        return await self._database.read(
            partial(self._stores.sessions.get_current, "lark", place.scope)
        )

    async def _newest(self, place: Place) -> list[Task]:
        """Return the last tasks of the chat's conversation, newest first."""
        session = await self._session(place)
        if session is None:
            return []
        return await self._gateway.queries.tasks(
            LOCAL_OWNER, session_id=session.id, limit=_MOST_LISTED
        )

    async def _open(self, place: Place) -> list[tuple[Run, Task]]:
        """Return what is not over in the chat's conversation, oldest first."""
        read, stores = self._database.read, self._stores
        session = await self._session(place)
        if session is None:
            return []
        runs = await read(partial(stores.runs.list_unfinished, session.id))
        tasks = [(run, await read(partial(stores.tasks.get, run.task_id))) for run in runs]
        return [(run, task) for run, task in tasks if task is not None]

    async def _named(self, place: Place, wanted: str) -> list[tuple[Run, Task]]:
        """Return the chat's task of that id or its end, or of that run's id."""
        read, stores = self._database.read, self._stores
        open_ = await self._open(place)
        if found := [each for each in open_ if names(each[1].id, wanted)]:
            return found
        run = await read(partial(stores.runs.get, RunId(wanted)))
        run = run or await read(partial(stores.runs.get_by_task, TaskId(wanted)))
        task = None if run is None else await read(partial(stores.tasks.get, run.task_id))
        if run is None or task is None or task.origin.chat_id != place.chat_id:
            return []
        return [(run, task)]


def _corrected(unknown: Unknown, words: ChatPhrases) -> str:
    if unknown.nearest:
        return words("unknown_command", command=unknown.word, nearest=unknown.nearest)
    return words("no_such_command", command=unknown.word, help=words.command("help"))


def _at_work(open_: Sequence[tuple[Run, Task]]) -> tuple[Run, Task]:
    return next((each for each in open_ if each[0].status != "queued"), open_[0])

"""Obeying: what a command does, and what is said about it."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from internal.agent.app.gateway import Gateway
from internal.agent.domain.errors import Conflict, Forbidden, NotFound
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.tasks import Run, Task
from internal.agent.ports.database import Database
from internal.agent.ports.stores import Stores
from internal.channels.lark.commands import Command, Unknown, help_text
from internal.channels.lark.gates import LarkRules, Pass
from internal.channels.lark.text import clip
from internal.channels.lark.words import Words


class Obeying:
    """Does what commands say, in the conversation of a chat."""

    def __init__(
        self, gateway: Gateway, database: Database, stores: Stores, rules: LarkRules
    ) -> None:
        self._gateway, self._database, self._stores = gateway, database, stores
        self._rules = rules

    async def obey(self, command: Command | Unknown, passed: Pass, place: "Place") -> str:
        """Do it and return what to answer."""
        words = passed.words
        match command:
            case Unknown(word, ""):
                return words("no_such_command", command=word, help=words.command("help"))
            case Unknown(word, nearest):
                return words("unknown_command", command=word, nearest=nearest)
            case Command("new"):
                await self._gateway.open_session(passed.principal, "lark", scope=place.scope)
                return words("new")
            case Command("stop", wanted):
                return await self._stop(passed, place, wanted)
            case Command("status"):
                return await self._status(words, place)
            case Command():
                return help_text(words, steers=self._rules.busy_mode == "steer")

    async def _stop(self, passed: Pass, place: "Place", wanted: str) -> str:
        """Stop the run at work in the chat, or the task that is named."""
        words, principal = passed.words, passed.principal
        open_ = await (self._named(place, wanted) if wanted else self._open(place))
        if not open_:
            return words("nothing_to_stop")
        run, task = _at_work(open_)
        if principal.may("operate") and task.origin.principal != principal.id:
            # the right to operate covers this chat, and the task is this chat's
            principal = msgspec.structs.replace(principal, roles=principal.roles | {"owner"})
        try:
            await self._gateway.stop(run.task_id, principal, "lark")
        except (NotFound, Forbidden):
            return words("not_yours")
        except Conflict:
            return words("nothing_to_stop")
        return words("stopping")

    async def _status(self, words: Words, place: "Place") -> str:
        open_ = await self._open(place)
        if not open_:
            return words("idle")
        run, task = _at_work(open_)
        status = words("status", status=words.status(run.status), task=clip(task.instruction, 200))
        more = words("status_more", count=len(open_) - 1) if len(open_) > 1 else ""
        return f"{status}\n{more}".strip()

    async def _open(self, place: "Place") -> list[tuple[Run, Task]]:
        """Return what is not over in the chat's conversation, oldest first."""
        read, stores = self._database.read, self._stores
        session = await read(partial(stores.sessions.at_hand, "lark", place.scope))
        if session is None:
            return []
        runs = await read(partial(stores.runs.open_runs, session.id))
        tasks = [(run, await read(partial(stores.tasks.get, run.task_id))) for run in runs]
        return [(run, task) for run, task in tasks if task is not None]

    async def _named(self, place: "Place", wanted: str) -> list[tuple[Run, Task]]:
        """Return the chat's task of that id, or of that run's id."""
        read, stores = self._database.read, self._stores
        run = await read(partial(stores.runs.get, RunId(wanted)))
        run = run or await read(partial(stores.runs.of_task, TaskId(wanted)))
        task = None if run is None else await read(partial(stores.tasks.get, run.task_id))
        if run is None or task is None or task.origin.chat_id != place.chat_id:
            return []
        return [(run, task)]


class Place(NamedTuple):
    """Where something was said: the chat, and the name of its conversation."""

    chat_id: str
    scope: str


def _at_work(open_: Sequence[tuple[Run, Task]]) -> tuple[Run, Task]:
    return next((each for each in open_ if each[0].status != "queued"), open_[0])

"""The settings and the conversation of a chat."""

from functools import partial

from internal.agent.domain.chats import ChatSettings
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.tasks import Channel, Run, Session, Task
from internal.agent.store.database import Database, Read
from internal.agent.store.stores import Stores


class Chats:
    """Reads and writes by chat; who may use them is checked by the channel."""

    def __init__(self, database: Database, stores: Stores) -> None:
        self._database, self._stores = database, stores

    async def get_settings(self, chat: str) -> ChatSettings:
        """Return the settings for the tasks of a chat."""
        return await self._database.read(partial(self._stores.chats.get_settings, chat))

    async def save_settings(self, chat: str, settings: ChatSettings) -> None:
        """Replace the settings of a chat."""
        await self._database.write(partial(self._stores.chats.save_settings, chat, settings))

    async def get_session(self, channel: Channel, scope: str) -> Session | None:
        """Return the current session of a scope."""
        return await self._database.read(partial(self._stores.sessions.get_current, channel, scope))

    async def list_unfinished(self, channel: Channel, scope: str) -> list[tuple[Run, Task]]:
        """Return the unfinished runs of the current session of a scope, oldest first."""
        stores = self._stores

        def work() -> Read[list[tuple[Run, Task]]]:
            found: list[tuple[Run, Task]] = []
            session = yield from stores.sessions.get_current(channel, scope)
            runs = [] if session is None else (yield from stores.runs.list_unfinished(session.id))
            for run in runs:
                task = yield from stores.tasks.get(run.task_id)
                if task is not None:
                    found.append((run, task))
            return found

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

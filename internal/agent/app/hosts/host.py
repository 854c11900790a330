"""A host that executes runs, and when sessions are bound to it."""

from pathlib import PurePosixPath
from typing import Literal

import msgspec

from internal.agent.domain.delegation.subtask import Subtask
from internal.agent.domain.errors import LeaseLost, RunHandedOver
from internal.agent.domain.tasks import Run, Task
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores

Location = Literal["host", "shared", "archive"]
"""Where the workspaces of sessions are: see `workspaces.location` in the settings."""


class Host(msgspec.Struct, frozen=True):
    """A host among the hosts that execute the runs of a database.

    Attributes:
        name: "" if the database is used by one host alone: it executes every run.
        location: where the workspaces of sessions are.
        folder: the folder that contains them.
        has_hooks: whether programs of the operator are told the folder of each run.
    """

    name: str = ""
    location: Location = "host"
    folder: str = ""
    has_hooks: bool = False

    def binds(self, task: Task, subtask: Subtask | None = None) -> bool:
        """Return whether the session of a task is bound to this host when it is claimed.

        If not, with the location `host` it is bound when a run first uses its files.
        """
        if self._is_elsewhere(task):
            return True
        if self.location != "host":
            return self.location == "archive"
        has_folder = task.spec.own_folder or (subtask is not None and subtask.workspace != "shared")
        return has_folder or bool(task.attachments) or self.has_hooks

    def archives(self, task: Task) -> bool:
        """Return whether the workspace of a task is archived between runs."""
        return bool(self.name) and self.location == "archive" and not self._is_elsewhere(task)

    def _is_elsewhere(self, task: Task) -> bool:
        """Return whether a task works in a folder outside of the one for workspaces."""
        named = task.spec.workspace
        if not named or task.spec.own_folder:
            return False
        return self.location == "archive" or not _is_below(named, self.folder)


ONLY_HOST = Host()
"""The host of a database that no other host uses."""


def _is_below(path: str, folder: str) -> bool:
    return bool(folder) and PurePosixPath(path).is_relative_to(folder) and ".." not in path


def bind_session(stores: Stores, run: Run, host: Host, task: Task | None = None) -> Write[None]:
    """Bind the session of a run that a host has claimed, if it uses files from the beginning.

    `task` is that of the run; None reads it.
    """
    if not host.name:
        return
    if task is None:
        task = yield from stores.tasks.get(run.task_id)
    if task is not None and host.binds(task, run.subtask):
        yield from stores.hosts.bind(run.session_id, host.name)


class WorkspaceUse:
    """Binds the session of a run to this host before the run uses its files.

    Until then any host may execute the runs of the session. The session has one host from the
    transaction of the first use on: a run of it on another host is handed over to that one before
    it uses a file, unless a terminal executes it. Folders that were made without a use are empty.

    Args:
        host: this host.
        run: one that it has claimed.
        task: that of the run.
    """

    def __init__(
        self, host: Host, run: Run, task: Task, *, database: Database, stores: Stores
    ) -> None:
        self._host, self._run = host, run
        self._database, self._stores = database, stores
        is_late = host.location == "host" and not host.binds(task, run.subtask)
        self._is_begun = not (host.name and is_late)

    async def begin(self) -> None:
        """Bind the session, unless this was done.

        Raises:
            LeaseLost: another process executes the run; nothing is bound.
            RunHandedOver: the files are on another host, which has to go on.
            StoreUnavailable: nothing can be stored.
        """
        if not self._is_begun:
            await self._database.write(self._bind)
            self._is_begun = True

    def _bind(self) -> Write[None]:
        run = yield from self._stores.runs.get(self._run.id)
        if run is None or run.status != "running" or run.fence != self._run.fence:
            raise LeaseLost(f"{self._run.id} is run by another process")
        yield from self._stores.hosts.bind(run.session_id, self._host.name)
        bound = yield from self._stores.hosts.get_of_session(run.session_id)
        if bound != self._host.name and not run.terminal:
            raise RunHandedOver(f"the files of {run.session_id} are on host {bound}")

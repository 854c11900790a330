"""A host that executes runs, and which sessions are bound to it."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from internal.agent.domain.tasks import Run, Task
from internal.agent.store.database import Write
from internal.agent.store.stores import Stores

Location = Literal["host", "shared", "archive"]
"""Where the workspaces of sessions are: see `workspaces.location` in the settings."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host among those that execute the runs of a database.

    Attributes:
        name: "" if the database is used by one host alone: it executes every run.
        location: where the workspaces of sessions are.
        folder: the folder that contains them.
    """

    name: str = ""
    location: Location = "host"
    folder: str = ""

    def binds(self, task: Task) -> bool:
        """Return whether the files of a task are on this host alone while it is executed."""
        return self.location != "shared" or self._is_elsewhere(task)

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


def bind_session(stores: Stores, run: Run, host: Host) -> Write[None]:
    """Bind the session of a run that a host has claimed, if its files are on that host alone."""
    if not host.name:
        return
    task = yield from stores.tasks.get(run.task_id)
    if task is not None and host.binds(task):
        yield from stores.hosts.bind(run.session_id, host.name)

"""Workspaces: the folder of a task."""

from pathlib import Path

from internal.agent.domain.errors import InvalidRequest, StoreUnavailable
from internal.agent.domain.tasks import Task


class Workspaces:
    """A task's own choice, else one folder a session below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __call__(self, task: Task) -> str:
        """Return the folder of a task; a session's own is made, mode 700.

        Raises:
            Malformed: the chosen one is no folder.
            StoreUnavailable: the session's own cannot be made.
        """
        chosen = task.brief.workspace
        if chosen:
            if not Path(chosen).is_dir():
                raise InvalidRequest(f"The workspace {chosen} is not a folder.")
            return chosen
        folder = self._root / task.session_id
        try:
            self._root.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"{folder} cannot be made: {error.strerror}.") from error
        return str(folder)

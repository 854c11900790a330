"""The folder that a task's tools work in."""

from pathlib import Path

from internal.agent.domain.errors import InvalidRequest, StoreUnavailable
from internal.agent.domain.tasks import Task


class Workspaces:
    """Chooses the workspace of a task: the one that it names, or a folder per session in `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __call__(self, task: Task) -> str:
        """Return the workspace of a task. The folder of a session is created with mode 700.

        Raises:
            InvalidRequest: the named workspace is not a folder.
            StoreUnavailable: the session's folder cannot be created.
        """
        named = task.spec.workspace
        if named:
            if not Path(named).is_dir():
                raise InvalidRequest(f"The workspace {named} is not a folder.")
            return named
        folder = self._root / task.session_id
        try:
            self._root.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"{folder} cannot be created: {error.strerror}.") from error
        return str(folder)

"""The files of sessions in a folder of the test."""

from pathlib import Path

from internal.agent.app.files.session_files import SessionFiles
from internal.agent.store.database import Database
from internal.agent.store.files import MAX_SESSION_BYTES
from internal.agent.store.stores import Stores
from internal.attachments.local import LocalAttachments
from internal.attachments.upload_folder import UploadFolder
from internal.observability.clock import SystemClock
from internal.sandbox.workspaces import Workspaces
from internal.worktrees.worktrees import GitWorktrees


def session_files(folder: Path, database: Database, stores: Stores) -> SessionFiles:
    """Return files in the folders that a gateway of this data folder uses."""
    return SessionFiles(
        database,
        stores,
        LocalAttachments(folder / "attachments"),
        Workspaces(folder, GitWorktrees()),
        uploads=UploadFolder(folder / "uploads", quota=MAX_SESSION_BYTES),
        clock=SystemClock(),
    )

"""Files of a workspace that get back the state that they had before a change."""

import os
from contextlib import suppress

from internal.workspace_changes.contents import (
    ABSENT,
    MAX_KEPT_FILE_BYTES,
    WatchedFileState,
    hash_of,
    identity_of,
    kind_of,
    read_file,
)
from internal.workspace_changes.records import ChangeRecord
from internal.workspace_changes.walk import TEMPORARY_PREFIX, open_parent

_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class ChangedSince(Exception):
    """A file is no longer in the state that a change left."""


def restore(root: int, change: ChangeRecord, before: bytes) -> WatchedFileState:
    """Give a file below an open folder the state before a change; return that state.

    `before` is the content of the file, or where a link leads. A file that is in that state already
    is left alone: an earlier attempt was killed before it could record that.

    Raises:
        ChangedSince: the file changed after the change; nothing was written.
        OSError: the file cannot be written.
    """
    was_deleted = not change.after.kind
    try:
        with open_parent(root, change.path, create=was_deleted) as (folder, name):
            # the same name each time: an attempt that was killed may have left it
            temporary = f"{TEMPORARY_PREFIX}undo-{change.id}"
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            if _is_now(folder, name, change.after):
                _replace(folder, name, change.before, before, temporary=temporary)
            elif not _is_now(folder, name, change.before):
                raise ChangedSince
            if not change.before.kind:
                return ABSENT
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            return change.before._replace(identity=identity_of(status))
    except (FileNotFoundError, NotADirectoryError) as error:
        if change.before.kind:
            raise ChangedSince from error
        return ABSENT  # its folder is gone, too


def _is_now(folder: int, name: str, expected: WatchedFileState) -> bool:
    """Return whether an entry of an open folder is in a state."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return not expected.kind
    if kind_of(status) != expected.kind or status.st_size != expected.size:
        return False
    if expected.kind == "link":
        return hash_of(os.fsencode(os.readlink(name, dir_fd=folder))) == expected.content
    if status.st_mode & 0o777 != expected.mode:
        return False
    if not expected.content:
        return identity_of(status) == expected.identity
    content, _ = read_file(folder, name, MAX_KEPT_FILE_BYTES)
    return content is not None and hash_of(content) == expected.content


def _replace(
    folder: int, name: str, state: WatchedFileState, content: bytes, *, temporary: str
) -> None:
    if not state.kind:
        os.unlink(name, dir_fd=folder)
        return
    try:
        if state.kind == "link":
            os.symlink(os.fsdecode(content), temporary, dir_fd=folder)
        else:
            descriptor = os.open(temporary, _NEW_FLAGS, 0o600, dir_fd=folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fchmod(descriptor, state.mode & 0o777)
                os.fsync(descriptor)
        # a rename follows no link
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise

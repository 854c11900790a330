"""Standard input of a command, its home folder, and the error of one that cannot be started."""

import os
import tempfile
from pathlib import Path
from typing import IO

from internal.agent.domain.errors import StoreUnavailable, ToolError
from internal.agent.domain.ids import SessionId
from internal.agent.domain.system_errors import describe_system_error
from internal.sandbox.workspaces import SessionFolders


def open_stdin(content: bytes | int) -> IO[bytes]:
    """Return the standard input of a command: a file with the content, or /dev/null.

    An open file is given as its descriptor, which stays open.
    """
    if isinstance(content, int):
        return os.fdopen(os.dup(content), "rb", buffering=0)
    if not content:
        return open(os.devnull, "rb")  # noqa: PTH123  # a device; the caller closes it
    file = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    file.write(content)  # a file, not a pipe: nothing has to write to it meanwhile
    file.seek(0)
    return file


def create_home(homes: SessionFolders, session_id: SessionId) -> str:
    """Return the private home folder of a session's commands. Blocks.

    Raises:
        ToolError: it cannot be created.
    """
    try:
        return homes.create(session_id)
    except StoreUnavailable as error:
        raise ToolError(str(error)) from error


def start_error(program: str, error: OSError | ValueError) -> ToolError:
    """Return the error of a command that cannot be started."""
    reason = describe_system_error(error) if isinstance(error, OSError) else error
    return ToolError(f"{Path(program).name} cannot be started: {reason}")

"""The tool that gives files of the workspace to people."""

import os
import stat
from contextlib import ExitStack
from typing import Annotated

import msgspec

from internal.agent.app.background_task import run_to_completion
from internal.agent.domain.errors import ToolError
from internal.agent.domain.permissions.targets import PathTarget
from internal.agent.domain.tasks import Attachment
from internal.agent.ports.tools import SharedFiles, ToolOutcome
from internal.tools.tool import ToolContext, tool
from internal.tools.workspace import WorkspacePath

MAX_SHARED_FILES = 50


@tool(
    risk="read",
    targets=(PathTarget("paths", multiple=True),),
    title={"en": "Share files", "zh": "分享文件"},
    idempotent=True,
)
async def share_file(
    context: ToolContext,
    paths: Annotated[
        list[WorkspacePath],
        msgspec.Meta(min_length=1, max_length=MAX_SHARED_FILES),
        "Files inside the workspace, such as reports/q1.pdf.",
    ],
    caption: Annotated[str, "One line about the files, for the person."] = "",
) -> ToolOutcome:
    """Give files to the person: they are shown with the answer and can be downloaded.

    Files that you write to output/ are shared by themselves. To give a folder, put it into an
    archive first.
    """
    distinct = {str(path): path for path in paths}
    files = [await store_file(context, path) for path in distinct.values()]
    return ToolOutcome("", shared=SharedFiles(tuple(files), caption))


async def store_file(context: ToolContext, path: WorkspacePath) -> Attachment:
    """Store a regular file of the workspace.

    Raises:
        ToolError: it is not a file, is outside or protected, or cannot be stored.
    """
    with ExitStack() as opened:
        descriptor = await run_to_completion(opened.enter_context, context.workspace.open(path))
        status = await run_to_completion(os.fstat, descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise ToolError(f"{path} is a folder: put it into an archive and share that")
        if not stat.S_ISREG(status.st_mode):
            raise ToolError(f"{path} is not a regular file")
        # not by the path of a folder of this machine
        name = "/".join(("input", *path.parts)) if path.outside else str(path)
        return await context.call.store_file(name, descriptor)

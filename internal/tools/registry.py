"""The list of built-in tools, and the tool source that runs them.

The control tools (`plan`, `update_plan`, `clarify`, `request_user`) are not here: the Turn handles
them.
"""

import asyncio
import difflib
import logging
import shutil
from collections.abc import Sequence
from typing import Any

from internal.agent.domain.errors import ToolError
from internal.agent.domain.permissions.policy import matches_call
from internal.agent.domain.tasks import Attachment
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.attachments import FileFolderResolver
from internal.agent.ports.documents import DocumentReader
from internal.agent.ports.sandbox import Sandbox
from internal.agent.ports.tools import CallContext, ToolOutcome, WithheldTool
from internal.tools.commands.background import BackgroundCommandPool
from internal.tools.commands.background_tools import shell_output, shell_stop
from internal.tools.commands.run_code import run_code
from internal.tools.commands.shell import shell
from internal.tools.diffs import truncate_diff
from internal.tools.filesystem import edit_file, list_dir, read_file, write_file
from internal.tools.protected_paths import ProtectedPaths
from internal.tools.search import search_files
from internal.tools.share_file import MAX_SHARED_FILES, share_file, store_file
from internal.tools.tool import FileLocks, Tool, ToolContext, WebClients
from internal.tools.web_fetch import web_fetch
from internal.tools.web_search.web_search import web_search
from internal.tools.workspace import Workspace

logger = logging.getLogger(__name__)

TOOLS: tuple[Tool, ...] = (
    read_file,
    write_file,
    edit_file,
    list_dir,
    search_files,
    share_file,
    shell,
    shell_output,
    shell_stop,
    run_code,
    web_fetch,
    web_search,
)
"""All built-in tools. web_search is offered only where a search provider is configured."""

PREVIEW_TIMEOUT_SECONDS = 5.0
_PROGRAMS = "/usr/local/bin:/usr/bin:/bin"


class ToolBox:
    """The built-in tools as a `ToolSource`.

    Args:
        sandbox: runs commands.
        background: the background commands of this process.
        documents: reads documents and pictures.
        web: fetches and searches web pages; without a search web_search is not offered.
        protected: the files that no tool opens.
        folders: returns the folders of a session for files; None for a box without sessions.
        ripgrep: the full path of `rg`; None to look for it in the system's program folders.
        tools: the tools to offer.
    """

    def __init__(
        self,
        *,
        sandbox: Sandbox,
        background: BackgroundCommandPool,
        documents: DocumentReader,
        web: WebClients,
        protected: ProtectedPaths,
        folders: FileFolderResolver | None = None,
        ripgrep: str | None = None,
        tools: tuple[Tool, ...] = TOOLS,
    ) -> None:
        self._sandbox = sandbox
        self._background = background
        self._documents = documents
        self._web = web
        self._protected = protected
        self._folders = folders
        self._ripgrep = ripgrep or shutil.which("rg", path=_PROGRAMS)
        self.preview_timeout_seconds = PREVIEW_TIMEOUT_SECONDS
        """The time limit of a preview."""
        offered = (each for each in tools if web.search is not None or each is not web_search)
        self._tools = {each.spec.name: each for each in offered}
        self._locks = FileLocks()

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the specifications in the order of the list."""
        return tuple(each.spec for each in self._tools.values())

    def withheld(self) -> tuple[WithheldTool, ...]:
        """Return (): all tools are offered."""
        return ()

    async def run(
        self, context: CallContext, name: str, arguments: dict[str, Any], /
    ) -> ToolOutcome:
        """Run one call. Changes to one file are serialized.

        Raises:
            ToolError: the call failed; the message is for the model.
        """
        found = self._tools.get(name)
        if found is None:
            near = difflib.get_close_matches(name[:100], self._tools, n=1)
            hint = f": did you mean {near[0]}?" if near else ""
            raise ToolError(f"there is no tool {name[:100]!r}{hint}")
        return await found.run(self._context(context), arguments)

    async def preview(self, context: CallContext, name: str, arguments: dict[str, Any], /) -> str:
        """Return the changes that a call would make; see `ToolSource.preview`."""
        found = self._tools.get(name)
        if found is None:
            return ""
        try:
            async with asyncio.timeout(self.preview_timeout_seconds):
                change = await found.preview(self._context(context), arguments)
        except ToolError:
            raise
        except TimeoutError:
            change = "[no preview: it takes too long]"
        except Exception:  # the person can still decide without a preview
            logger.exception("preview failed", extra={"run_id": context.run_id, "tool": name})
            change = "[no preview]"
        return await asyncio.to_thread(truncate_diff, change)

    async def store_files(
        self, context: CallContext, paths: Sequence[str], /, *, deny: Sequence[str] = ()
    ) -> tuple[Attachment, ...]:
        """Store files of the workspace; see `WorkspaceFiles`."""
        if len(paths) > MAX_SHARED_FILES:
            raise ToolError(
                f"{len(paths):,} files are too many: at most {MAX_SHARED_FILES} at once"
            )
        for path in paths:
            for rule in deny:
                reads = matches_call(rule, read_file.spec, {"path": path})
                if reads or matches_call(rule, share_file.spec, {"paths": [path]}):
                    raise ToolError(f"{path} is denied by the rule {rule}")
        opened = self._context(context)
        parsed = {str(path): path for path in map(opened.workspace.parse, paths)}
        return tuple([await store_file(opened, path) for path in parsed.values()])

    def _context(self, context: CallContext) -> ToolContext:
        """Return the context of a call."""
        folders = self._folders(context.session_id, context.workspace) if self._folders else None
        return ToolContext(
            call=context,
            workspace=Workspace(context.workspace, self._protected, folders),
            sandbox=self._sandbox,
            documents=self._documents,
            web=self._web,
            background=self._background,
            locks=self._locks,
            ripgrep=self._ripgrep,
        )

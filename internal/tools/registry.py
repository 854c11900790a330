"""All tools that act on the world, and the source that offers them.

`plan`, `update_plan`, `clarify` and `request_user` are not here: the Turn answers them itself.
"""

import asyncio
import difflib
import logging
import shutil
from typing import Any
from weakref import WeakValueDictionary

from internal.agent.domain.errors import ToolError
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.sandbox import Sandbox
from internal.agent.ports.tools import CallContext, ToolOutcome
from internal.tools.diffs import truncate_diff
from internal.tools.edit_file import edit_file
from internal.tools.filesystem import list_dir, read_file, write_file
from internal.tools.http_client import Fetcher
from internal.tools.search import search_files
from internal.tools.shell import shell
from internal.tools.tool import Tool, ToolContext
from internal.tools.web_fetch import web_fetch
from internal.tools.workspace import Workspace

logger = logging.getLogger(__name__)

TOOLS: tuple[Tool, ...] = (
    read_file,
    write_file,
    edit_file,
    list_dir,
    search_files,
    shell,
    web_fetch,
)

_PROGRAMS = "/usr/local/bin:/usr/bin:/bin"


class ToolBox:
    """The built-in tools. Fills `ToolSource`.

    Args:
        sandbox: where commands run.
        fetcher: what reaches the web.
        ripgrep: the full path of `rg`; None to look for it where systems install programs.
        tools: which tools there are.
        preview_seconds: how long anybody waits to see what a call would change.
    """

    def __init__(
        self,
        *,
        sandbox: Sandbox,
        fetcher: Fetcher,
        ripgrep: str | None = None,
        tools: tuple[Tool, ...] = TOOLS,
        preview_seconds: float = 5.0,
    ) -> None:
        self._sandbox = sandbox
        self._fetcher = fetcher
        self._ripgrep = ripgrep or shutil.which("rg", path=_PROGRAMS)
        self._preview_seconds = preview_seconds
        self._tools = {each.spec.name: each for each in tools}
        self._writing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return what can be called, in the order of the roster."""
        return tuple(each.spec for each in self._tools.values())

    async def run(
        self, context: CallContext, name: str, arguments: dict[str, Any], /
    ) -> ToolOutcome:
        """Run one call; see the port. Changes to files of one workspace happen one at a time.

        Raises:
            ToolError: it could not be done; the sentence is for the model.
        """
        wanted = self._tools.get(name)
        if wanted is None:
            near = difflib.get_close_matches(name[:100], self._tools, n=1)
            hint = f": did you mean {near[0]}?" if near else ""
            raise ToolError(f"there is no tool {name[:100]!r}{hint}")
        return await wanted.run(self._for(context), arguments)

    async def preview(self, context: CallContext, name: str, arguments: dict[str, Any], /) -> str:
        """Say what a call would change; see the port."""
        wanted = self._tools.get(name)
        if wanted is None:
            return ""
        try:
            async with asyncio.timeout(self._preview_seconds):
                change = await wanted.preview(self._for(context), arguments)
        except ToolError as error:
            change = f"[no preview: {error}]"
        except TimeoutError:
            change = "[no preview: it takes too long]"
        except Exception:  # a call that nobody can look into is still for a person to judge
            logger.exception("preview broke", extra={"run_id": context.run_id, "tool": name})
            change = "[no preview]"
        return await asyncio.to_thread(truncate_diff, change)

    def _for(self, context: CallContext) -> ToolContext:
        """Return what a tool may use in a call."""
        return ToolContext(
            call=context,
            workspace=Workspace(context.workspace),
            sandbox=self._sandbox,
            fetcher=self._fetcher,
            writing=self._writing.setdefault(context.workspace, asyncio.Lock()),
            ripgrep=self._ripgrep,
        )

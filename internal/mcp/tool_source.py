"""The tools of MCP servers as a source of tools."""

from typing import Any

from internal.agent.domain.text import escape_hidden, truncate_line
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.tools import CallContext, ToolOutcome, WithheldTool
from internal.mcp.results import ResultReader
from internal.mcp.servers import McpServers, OfferedTool

MAX_PROGRESS_CHARS = 500
_SPARE_SECONDS = 5.0


class McpTools:
    """The tools that a person has accepted. Implements `ToolSource`.

    Args:
        servers: runs the calls.
        results: reads what they return.
    """

    def __init__(self, servers: McpServers, results: ResultReader) -> None:
        self._servers, self._results = servers, results

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the specifications of the accepted tools; no server is started."""
        return tuple(map(_spec, self._servers.offer().tools.values()))

    def withheld(self) -> tuple[WithheldTool, ...]:
        """Return the tools that wait for a review; `mcp__server` stands for all of a server."""
        return self._servers.offer().withheld

    async def run(
        self, context: CallContext, name: str, arguments: dict[str, Any], /
    ) -> ToolOutcome:
        """Run a call; the first one of a server starts it. Cancelling it tells the server.

        Raises:
            ToolError: the call failed, or the tool is withheld.
        """

        def report(done: float, total: float | None, message: str) -> None:
            amount = f"{done:g} of {total:g}" if total else f"{done:g}"
            text = truncate_line(escape_hidden(message), MAX_PROGRESS_CHARS)
            context.progress(f"{text} ({amount})\n" if text else f"{amount}\n")

        result = await self._servers.call(name, arguments, report)
        return await self._results.read(context, name, result)

    async def preview(
        self, _context: CallContext, _name: str, _arguments: dict[str, Any], /
    ) -> str:
        """Return "": what a call would change is not known."""
        return ""


def _spec(offered: OfferedTool) -> ToolSpec:
    server, tool = offered
    return ToolSpec(
        name=tool.offered_name,
        description=tool.description,
        parameters=tool.schema,
        risk=server.risk_of(tool.name),
        # the limits of the server come first: they say more
        timeout_seconds=server.start_timeout_seconds
        + 2 * server.call_timeout_seconds
        + _SPARE_SECONDS,
    )

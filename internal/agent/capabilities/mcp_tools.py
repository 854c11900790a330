"""Tools of MCP servers: deferred where their schemas would fill too much of every request."""

from msgspec.structs import replace

from internal.agent.app.runs.context import RunContext
from internal.agent.capabilities.capability import Capability
from internal.agent.capabilities.run_draft import (
    DraftChange,
    PromptScope,
    PromptSection,
    RunDraft,
)
from internal.agent.domain.react.deferred_tools import found_tools, list_servers, split_deferred
from internal.agent.domain.react.gates import DEFERRED_TOOL_SPECS
from internal.agent.domain.react.turn import Turn
from internal.agent.ports.llm import ModelRequest

_INTRO = """\
The tools of these MCP servers are not listed with the others. `find_tools` returns their \
arguments, `use_tool` calls them by their full name, `mcp__SERVER__TOOL`."""


class McpToolsCapability(Capability):
    """Defers the tools of servers, and names the tools that the model found.

    Args:
        max_schema_share: schemas that together take a larger share of the context window are
            deferred.
    """

    name = "MCP tools"

    def __init__(self, max_schema_share: float) -> None:
        self._max_schema_share = max_schema_share

    def contribute(self, _scope: PromptScope, /) -> DraftChange:
        """Defer the tools of a draft: nothing is read."""
        return self._defer

    def _defer(self, draft: RunDraft) -> RunDraft:
        max_tokens = draft.limits.context_window * self._max_schema_share
        tools, deferred = split_deferred(draft.tools, max_tokens, draft.max_tools)
        if not deferred:
            return draft
        section = PromptSection("tools", _INTRO, list_servers(deferred))
        return replace(
            draft,
            tools=(*tools, *DEFERRED_TOOL_SPECS),
            deferred=deferred,
            sections=(*draft.sections, section),
        )

    async def before_request(
        self, _run: RunContext, turn: Turn, request: ModelRequest, /
    ) -> ModelRequest:
        """Name the deferred tools that the model knows."""
        if not turn.config.deferred:
            return request
        found = found_tools(turn.config.deferred, turn.messages)
        return replace(request, found=found)

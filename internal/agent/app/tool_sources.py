"""Several tool sources as one."""

from collections.abc import Sequence
from typing import Any

from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.tools import CallContext, ToolOutcome, ToolSource, WithheldTool


class CombinedTools:
    """The tools of several sources. Implements `ToolSource`.

    Args:
        sources: the first one gets the calls of tools that no source has.
    """

    def __init__(self, sources: Sequence[ToolSource]) -> None:
        self._sources = tuple(sources)

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the specifications of all sources, in their order."""
        return tuple(spec for source in self._sources for spec in source.specs())

    def withheld(self) -> tuple[WithheldTool, ...]:
        """Return the withheld tools of all sources, in their order."""
        return tuple(each for source in self._sources for each in source.withheld())

    async def run(
        self, context: CallContext, name: str, arguments: dict[str, Any], /
    ) -> ToolOutcome:
        """Run a call; see `ToolSource.run`."""
        return await self._find(name).run(context, name, arguments)

    async def preview(self, context: CallContext, name: str, arguments: dict[str, Any], /) -> str:
        """Return the changes that a call would make; see `ToolSource.preview`."""
        return await self._find(name).preview(context, name, arguments)

    def _find(self, name: str) -> ToolSource:
        for source in self._sources:
            if any(spec.name == name for spec in source.specs()):
                return source
        for source in self._sources:  # one that was withheld meanwhile says why
            if any(f"{name}__".startswith(f"{each.name}__") for each in source.withheld()):
                return source
        return self._sources[0]

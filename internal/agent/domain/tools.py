"""Specifications of tools for the model, frozen when a run is prepared."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from internal.agent.domain.permissions.targets import (
    CommandTarget,
    Risk,
    SandboxTarget,
    Target,
    ToolTargets,
    mcp_server,
)
from internal.agent.domain.text import text_tokens
from internal.i18n.language import Language


class ToolSpec(msgspec.Struct, frozen=True, dict=True):
    """A tool as the model sees it. `parameters` is a JSON Schema object.

    An `idempotent` call may be repeated when its outcome is unknown. `targets` are the arguments
    that permission rules apply to, `title` its display names by language. A `sandboxed` tool
    changes and runs nothing except by commands in the sandbox. Results of a `retained` one stay in
    the context when older ones are left out. `trusts` is the argument that names the newly trusted
    item: the owner must approve every such call, in every mode. A tool that is `only_in_groups` is
    offered only to tasks from group chats.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    risk: Risk
    idempotent: bool = False
    timeout_seconds: float | None = None
    targets: tuple[Target, ...] = ()
    title: dict[Language, str] = {}
    sandboxed: bool = False
    retained: bool = False
    trusts: str = ""
    only_in_groups: bool = False

    @cached_property
    def schema_text(self) -> str:
        """The parameters as JSON."""
        return msgspec.json.encode(self.parameters).decode()

    @cached_property
    def tokens(self) -> int:
        """The estimated tokens of the schema, as a model sees it."""
        return text_tokens(self.name + self.description) + text_tokens(self.schema_text)

    @property
    def may_use_files(self) -> bool:
        """False for a tool that reaches the web and nothing on this machine."""
        return self.risk != "net" or bool(mcp_server(self.name))

    @property
    def server_title(self) -> str:
        """The display name of an MCP server's tool; "" for other tools."""
        return next(iter(self.title.values()), "") if mcp_server(self.name) else ""

    def command(self, arguments: Mapping[str, Any]) -> str | None:
        """Return the command line of a call of a tool that runs nothing else, else None."""
        match [target for target in self.targets if not isinstance(target, SandboxTarget)]:
            case [CommandTarget(argument)]:
                text = arguments.get(argument)
                return text if isinstance(text, str) else None
            case _:
                return None


def targets_by_tool(specs: Iterable[ToolSpec]) -> ToolTargets:
    """Return the permission targets of the tools, as the rule parser takes them."""
    return {spec.name: spec.targets for spec in specs}


def titles_by_tool(specs: Iterable[ToolSpec]) -> dict[str, dict[Language, str]]:
    """Return the titles of the tools that have one, by tool name and language."""
    return {spec.name: spec.title for spec in specs if spec.title}

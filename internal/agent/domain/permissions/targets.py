"""Targets in the arguments of a tool call: paths, addresses and commands.

A tool declares its targets in its specification. Rules are matched against targets only, so a new
tool is covered by the same rules as every other tool with such a target.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

Risk = Literal["read", "write", "exec", "net", "ui"]


class PathTarget(msgspec.Struct, frozen=True, tag="path"):
    """An argument that holds a path in the workspace; a missing one is the workspace itself.

    `recursive`: the tool also reads everything below the path. `multiple`: the argument is a list.
    """

    argument: str
    recursive: bool = False
    multiple: bool = False


class UrlTarget(msgspec.Struct, frozen=True, tag="url"):
    """An argument that holds an http or https address."""

    argument: str


class CommandTarget(msgspec.Struct, frozen=True, tag="command"):
    """An argument that holds a command line for bash."""

    argument: str


class CodeTarget(msgspec.Struct, frozen=True, tag="code"):
    """An argument that holds a program in some language. No rule looks into it."""

    argument: str


class NetworkTarget(msgspec.Struct, frozen=True, tag="network"):
    """An argument that lists hosts which an isolated command reaches."""

    argument: str


class OutsidePathTarget(msgspec.Struct, frozen=True, tag="outside"):
    """An argument that lists files outside of the workspace which an isolated command sees.

    `writable`: it also changes them.
    """

    argument: str
    writable: bool = False


Target = PathTarget | UrlTarget | CommandTarget | CodeTarget | NetworkTarget | OutsidePathTarget
SandboxTarget = NetworkTarget | OutsidePathTarget
"""Access of an isolated command beyond its workspace."""

NETWORK, READ_OUTSIDE, WRITE_OUTSIDE = "network", "read_outside", "write_outside"
"""What stands for a tool in rules about what commands of all tools reach: `network(example.com)`,
`read_outside(/srv/data)`, `write_outside(/srv/data)`."""

SANDBOX_TARGETS: dict[str, SandboxTarget] = {
    NETWORK: NetworkTarget(NETWORK),
    READ_OUTSIDE: OutsidePathTarget(READ_OUTSIDE),
    WRITE_OUTSIDE: OutsidePathTarget(WRITE_OUTSIDE, writable=True),
}
"""Kinds of the patterns of these rules."""

MCP_PREFIX = "mcp__"
"""The beginning of the name of a tool of an MCP server: `mcp__server__tool`."""


def mcp_server(tool: str) -> str:
    """Return the name of the MCP server that has a tool, "" for any other tool."""
    if not tool.startswith(MCP_PREFIX):
        return ""
    return tool.removeprefix(MCP_PREFIX).partition("__")[0]


def rule_names(tool: str) -> frozenset[str]:
    """Return the names that stand for a tool in rules and profiles.

    That is its own name, and for a tool of an MCP server also `mcp__server`.
    """
    if not tool.startswith(MCP_PREFIX):
        return frozenset({tool})
    return frozenset({tool, f"{MCP_PREFIX}{mcp_server(tool)}"})


ToolTargets = Mapping[str, tuple[Target, ...]]
"""The targets of every known tool, by tool name."""

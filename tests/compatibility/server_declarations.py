"""Declarations of MCP servers of others, in `servers.toml` beside this module."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

DECLARED = Path(__file__).parent / "servers.toml"


class ServerDeclaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server, the first command of its README, and one call.

    `{home}` in a command and in arguments is the folder of the person. `files` are made there
    before, `variables` are values known to a person, `given` the options required by the README.
    `documented` are the options and the command that docs/mcp.md or the README names for a machine
    like this one, tried where the first command does not work. `expected` is a part of the result
    of the call, `made` a file that it must leave for the person; without a `tool` only the list of
    tools is tried, and `remark` is the reason. `untried` is the reason why it is not run at all.
    """

    name: str
    registry: str
    command: str
    tool: str = ""
    arguments: dict[str, Any] = {}
    expected: str = ""
    made: str = ""
    given: str = ""
    documented: str = ""
    variables: dict[str, str] = {}
    files: dict[str, str] = {}
    remark: str = ""
    untried: str = ""


@cache
def server_declarations() -> tuple[ServerDeclaration, ...]:
    """Return all servers, by name."""
    rows = tomllib.loads(DECLARED.read_text(encoding="utf-8"))["server"]
    found = msgspec.convert(rows, list[ServerDeclaration])
    return tuple(sorted(found, key=lambda each: each.name))

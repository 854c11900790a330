"""Declarations of MCP servers of others, in `servers.toml` beside this module."""
from typing import NamedTuple
class ServerDeclaration(NamedTuple):
    name: str
    command: str
    untried: str = ""
def server_declarations() -> tuple[ServerDeclaration, ...]:
    return ()

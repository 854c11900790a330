"""Entries of MCP clients for `larkspur mcp serve`, each in the form of its client.

Clients start the command with few variables and in any folder, so an entry names everything by its
absolute path. It has no secret: the command reads the token from the home folder. Standard library
only, as is `mcp_stdio`.
"""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

NAME = "larkspur"
"""The name of the server in an entry."""


class McpCommand(NamedTuple):
    """A command that a client starts, with the variables that it adds."""

    program: str
    args: tuple[str, ...]
    env: Mapping[str, str]

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that the JSON of most clients has."""
        return {"command": self.program, "args": list(self.args), "env": dict(self.env)}

    @property
    def problem(self) -> str:
        """Sentence about a part that clients would misread, or ""."""
        for text in (self.program, *self.args, *self.env.values()):
            if not text.isprintable():
                return f"{text!a} has characters that cannot be written into an entry."
            if "$" in text:
                return f"{text} has a $, which clients take for a variable."
        return ""


class McpClient(NamedTuple):
    """A client: where its entry belongs, the entry, and a command of the client that adds it."""

    name: str
    place: str
    entry: Callable[[McpCommand], str]
    adding: Callable[[McpCommand], list[str]] | None = None


def serve_command(home: Path, server: str | None) -> McpCommand:
    """Return the command that serves the gateway of a home folder, or the one at a URL."""
    where = ("--server", server) if server else ()
    return McpCommand(_program(), ("mcp", "serve", *where), {"LARKSPUR_HOME": str(home)})


def _program() -> str:
    """Return the absolute path of this command. Links are kept: an update changes their target."""
    started = Path(sys.argv[0]).absolute()
    beside = Path(sys.executable).absolute().with_name(NAME)
    for path in (started, beside):
        if path.name == NAME and os.access(path, os.X_OK):
            return str(path)
    return shutil.which(NAME) or NAME


def _json(*keys: str, **more: str) -> Callable[[McpCommand], str]:
    """Return a function that writes JSON with the entry below these keys."""

    def entry(command: McpCommand) -> str:
        value: dict[str, Any] = {**more, **command.fields}
        for key in (NAME, *reversed(keys)):
            value = {key: value}
        return json.dumps(value, indent=2, ensure_ascii=False)

    return entry


def _toml(command: McpCommand) -> str:
    # printable strings are the same in JSON and TOML
    env = ", ".join(f"{name} = {_quoted(value)}" for name, value in command.env.items())
    return "\n".join(
        (
            f"[mcp_servers.{NAME}]",
            f"command = {_quoted(command.program)}",
            f"args = [{', '.join(map(_quoted, command.args))}]",
            f"env = {{ {env} }}",
        )
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _pairs(command: McpCommand) -> list[str]:
    return [f"{name}={value}" for name, value in command.env.items()]


def _claude(command: McpCommand) -> list[str]:
    env = [each for pair in _pairs(command) for each in ("-e", pair)]
    added = ["claude", "mcp", "add", "--scope", "user", NAME, *env]
    return [*added, "--", command.program, *command.args]


def _codex(command: McpCommand) -> list[str]:
    env = [each for pair in _pairs(command) for each in ("--env", pair)]
    return ["codex", "mcp", "add", NAME, *env, "--", command.program, *command.args]


def _gemini(command: McpCommand) -> list[str]:
    env = [each for pair in _pairs(command) for each in ("-e", pair)]
    return ["gemini", "mcp", "add", "--scope", "user", *env, NAME, command.program, *command.args]


def _vscode(command: McpCommand) -> list[str]:
    return ["code", "--add-mcp", json.dumps({"name": NAME, "type": "stdio", **command.fields})]


_SERVERS = _json("mcpServers")
CLIENTS = (
    McpClient("claude-code", ".mcp.json of a project", _json("mcpServers", type="stdio"), _claude),
    McpClient("claude-desktop", "claude_desktop_config.json (Settings → Developer)", _SERVERS),
    McpClient("codex", "~/.codex/config.toml", _toml, _codex),
    McpClient("gemini", "~/.gemini/settings.json", _SERVERS, _gemini),
    McpClient("cursor", "~/.cursor/mcp.json", _SERVERS),
    McpClient("vscode", ".vscode/mcp.json of a folder", _json("servers", type="stdio"), _vscode),
    McpClient("zed", "the settings.json of Zed", _json("context_servers")),
)
"""The clients that are known, by the name that `--print-config` takes."""


def adding_command(client: McpClient, command: McpCommand) -> str:
    """Return the command of a client that adds the entry, "" if the client has none."""
    return shlex.join(client.adding(command)) if client.adding else ""

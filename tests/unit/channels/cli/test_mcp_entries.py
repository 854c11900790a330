"""Entries of MCP clients, as their own parsers read them."""

import json
import re
import shlex
import tomllib
from typing import Any

import pytest

from internal.channels.cli.mcp_entries import CLIENTS, McpClient, McpCommand, adding_command
from tests import ROOT

COMMAND = McpCommand(
    '/opt/Ada\'s "tools"\\n/grüße/larkspur',
    ("mcp", "serve", "--server", "https://a.example/世界"),
    {"LARKSPUR_HOME": "/home/ada lovelace/.larkspur"},
)
BY_NAME = {each.name: each for each in CLIENTS}


def read(client: McpClient, text: str) -> dict[str, Any]:
    content: Any = tomllib.loads(text) if client.name == "codex" else json.loads(text)
    [servers] = content.values()
    entry: dict[str, Any] = servers["larkspur"]
    return entry


@pytest.mark.parametrize("client", CLIENTS, ids=[each.name for each in CLIENTS])
def test_an_entry_says_program_arguments_and_variables(client: McpClient) -> None:
    entry = read(client, client.entry(COMMAND))
    assert {**entry, "type": "stdio"} == {**COMMAND.fields, "type": "stdio"}
    words = shlex.split(adding_command(client, COMMAND))
    if client.name == "vscode":
        assert json.loads(words[-1]) == {"name": "larkspur", **entry}
    elif words:
        assert words[-5:] == [COMMAND.program, *COMMAND.args]
        assert f"LARKSPUR_HOME={COMMAND.env['LARKSPUR_HOME']}" in words


@pytest.mark.parametrize("path", ["/srv/a\nb", "/srv/\udcff", "/srv/$HOME", "/srv/\x7f"])
def test_paths_that_clients_would_read_otherwise_are_refused(path: str) -> None:
    assert McpCommand("/bin/larkspur", (), {"LARKSPUR_HOME": path}).problem
    assert not COMMAND.problem


def entry_in_documents(page: str, client: str) -> dict[str, Any]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    shown = re.search(rf"--print-config {client}\n```\n\n```\w+\n(.*?)```", text, re.DOTALL)
    assert shown is not None
    return read(BY_NAME[client], shown[1])


@pytest.mark.parametrize("page", ["mcp.md", "mcp.zh.md"])
@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini", "cursor"])
def test_the_documents_show_the_entry_of_a_client(page: str, client: str) -> None:
    command = McpCommand(
        "/home/ada/.local/bin/larkspur",
        ("mcp", "serve"),
        {"LARKSPUR_HOME": "/home/ada/.larkspur"},
    )
    shown = entry_in_documents(page, client)
    assert shown == read(BY_NAME[client], BY_NAME[client].entry(command))

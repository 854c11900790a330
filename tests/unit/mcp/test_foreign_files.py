"""Files with servers of other programs."""

import json
from pathlib import Path

import pytest

from internal.mcp.definitions import DefinitionError
from internal.mcp.foreign_files import read_servers

CODE = """{
  // Visual Studio Code
  "inputs": [{"id": "key", "type": "promptString", "password": true}],
  "servers": {
    "My Server": {
      "type": "stdio", "command": "${workspaceFolder}/run", "env": {"K": "${input:key}"}, "dev": {}
    },
    "my-server": {"type": "sse", "url": "https://example.com/sse"},
    "天气": {"command": "w"},
    "socket": {"type": "ws", "url": "wss://example.com"},
    "text": {"url": 3},
  },
}
"""
CODEX = """
model = "gpt"
[mcp_servers.wiki]
url = "https://example.com/mcp"
bearer_token_env_var = "WIKI_TOKEN"
[mcp_servers.time]
command = "mcp-server-time"
"""
GOOSE = """
extensions:
  developer:
    type: builtin
    enabled: true
  time:
    type: stdio
    cmd: mcp-server-time
    args: []
"""


def test_the_file_of_an_editor_is_read_and_one_bad_entry_hides_no_other(tmp_path: Path) -> None:
    file = tmp_path / ".vscode" / "mcp.json"
    file.parent.mkdir()
    file.write_text(CODE)
    first, second, third, socket, text = read_servers(file)
    assert first.name == "my-server"
    assert first.entry == {"command": f"{tmp_path}/run", "env": {"K": "${KEY}"}}
    assert first.notes == (
        "'My Server' is called my-server here.",
        "${input:key} is the variable KEY of Larkspur.",
        "Left out: dev; there are no such keys here.",
    )
    assert (second.name, second.entry["type"]) == ("my-server-2", "sse")
    assert third.name.startswith("server-")
    assert third.notes == (f"'天气' is called {third.name} here.",)
    assert "WebSocket" in socket.problem
    assert text.entry == {"url": 3}


@pytest.mark.parametrize(
    ("name", "content", "servers"),
    [
        ("claude.json", '{"mcpServers": {"a": {"command": "x"}, "b": 3}}', {"a", "b"}),
        ("settings.json", '{"mcp": {"servers": {"a": {"command": "x"}}}}', {"a"}),
        ("opencode.json", '{"mcp": {"a": {"type": "local", "command": ["x"]}}}', {"a"}),
        ("zed.json", '{"theme": "x", "context_servers": {"a": {"command": "x"}}}', {"a"}),
        ("amp.json", '{"amp.mcpServers": {"a": {"command": "x"}}}', {"a"}),
        ("bare.json", '{"a": {"command": "x"}, "b": {"url": "https://b.example"}}', {"a", "b"}),
        ("list.yaml", "mcpServers:\n  - name: a\n    command: x\n", {"a"}),
        ("config.toml", CODEX, {"wiki", "time"}),
        ("goose.yaml", GOOSE, {"time"}),
    ],
)
def test_every_form_is_read(tmp_path: Path, name: str, content: str, servers: set[str]) -> None:
    file = tmp_path / name
    file.write_text(content)
    assert {each.name for each in read_servers(file)} == servers


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("missing.json", None, "has no mcpServers, servers, context_servers, mcp_servers or mcp"),
        ("empty.json", '{"servers": {"a": {}}}', "has no mcpServers"),
        ("text.json", "[1]", "must be an object"),
        ("wrong.json", '{\n"a": }', r"wrong.json:2: this is not JSON"),
        ("deep.json", "[" * 100_000, "cannot be read"),
        ("wrong.toml", "a = ", "this is not TOML"),
        ("wrong.yaml", "a: [", "wrong.yaml"),
        ("bytes.json", b"\xff", "it is not UTF-8"),
    ],
)
def test_a_file_without_servers_is_refused(
    tmp_path: Path, name: str, content: str | bytes | None, reason: str
) -> None:
    if content is not None:
        raw = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(raw)
    with pytest.raises(DefinitionError, match=reason):
        read_servers(tmp_path / name)


def test_what_is_read_is_what_claude_code_writes(tmp_path: Path) -> None:
    entry = {"type": "http", "url": "https://example.com", "headers": {"A": "${B:-c}"}}
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"a": entry}}))
    (found,) = read_servers(file)
    assert (found.entry, found.notes, found.problem) == (entry, (), "")

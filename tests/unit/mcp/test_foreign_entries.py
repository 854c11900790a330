"""Entries of other programs, in our keys."""

from pathlib import Path
from typing import Any

import pytest

from internal.mcp.foreign_entries import Inputs, convert_entry

INPUTS = Inputs("/srv/site", {"level": "low", "odd": "a}b"})
URL = "https://example.com/mcp"


@pytest.mark.parametrize(
    ("given", "entry"),
    [
        # Claude Desktop, Claude Code, Cursor, Cline, Roo Code
        ({"command": "npx", "args": ["-y"], "type": "stdio"}, {"command": "npx", "args": ["-y"]}),
        ({"command": "x", "env": {"A": "1", "B": None}}, {"command": "x", "env": {"A": "1"}}),
        ({"command": "x", "timeout": 60}, {"command": "x", "call_timeout_seconds": 60}),
        ({"url": URL, "type": "streamable-http"}, {"url": URL, "type": "http"}),
        ({"url": URL, "transport": "sse"}, {"url": URL, "type": "sse"}),
        ({"transport": {"type": "sse", "url": URL}}, {"url": URL, "type": "sse"}),
        # Windsurf, Gemini CLI, Goose
        ({"serverUrl": URL}, {"url": URL}),
        ({"httpUrl": URL, "timeout": 30_000}, {"url": URL, "call_timeout_seconds": 30}),
        ({"cmd": "x", "envs": {"A": "1"}}, {"command": "x", "env": {"A": "1"}}),
        ({"uri": URL, "type": "streamable_http"}, {"url": URL, "type": "http"}),
        # Zed, OpenCode
        (
            {"source": "custom", "command": {"path": "x", "args": ["a"], "env": {"A": "1"}}},
            {"source": "custom", "command": "x", "args": ["a"], "env": {"A": "1"}},
        ),
        (
            {
                "type": "local",
                "command": ["npx", "-y"],
                "environment": {"A": "1"},
                "enabled": False,
            },
            {"command": "npx", "args": ["-y"], "env": {"A": "1"}, "disabled": True},
        ),
        ({"type": "remote", "url": URL, "enabled": True}, {"url": URL}),
        # Codex
        (
            {
                "url": URL,
                "bearer_token_env_var": "WIKI_TOKEN",
                "http_headers": {"X-A": "1"},
                "env_http_headers": {"X-B": "B_VALUE"},
                "startup_timeout_sec": 20,
                "tool_timeout_sec": 5.5,
            },
            {
                "url": URL,
                "headers": {
                    "X-A": "1",
                    "Authorization": "Bearer ${WIKI_TOKEN}",
                    "X-B": "${B_VALUE}",
                },
                "start_timeout_seconds": 20,
                "call_timeout_seconds": 5.5,
            },
        ),
        (
            {"command": "x", "env_vars": ["A"], "env": {"B": "1"}, "startup_timeout_ms": 500},
            {"command": "x", "env": {"A": "${A}", "B": "1"}, "start_timeout_seconds": 0.5},
        ),
    ],
)
def test_the_keys_of_other_programs_become_ours(
    given: dict[str, Any], entry: dict[str, Any]
) -> None:
    assert convert_entry(given, INPUTS) == (entry, ())


def test_an_entry_with_our_keys_stays_as_it_is() -> None:
    entry = {"command": "x", "args": ["$HOME", "$${A}"], "env": {"A": "$B"}, "risk": "read"}
    assert convert_entry(entry) == (entry, ())


@pytest.mark.parametrize(
    ("value", "converted"),
    [
        ("${A}", "${A}"),
        ("${A:-b}", "${A:-b}"),
        ("${env:A}/x", "${A}/x"),
        ("{env:A}", "${A}"),
        ("$${env:A}", "$${env:A}"),
        ("Bearer $TOKEN", "Bearer ${TOKEN}"),
        ("costs $5, $lower", "costs $5, $lower"),
        ("${workspaceFolder}/a", "/srv/site/a"),
        ("${workspaceFolderBasename}", "site"),
        ("${userHome}${/}a", f"{Path.home()}/a"),
        ("${input:api-key}", "${API_KEY}"),
        ("${input:level}", "${LEVEL:-low}"),
        ("${input:odd}", "${ODD}"),
        ("${input:1}", "${INPUT_1}"),
    ],
)
def test_variables_become_ours(value: str, converted: str) -> None:
    found = convert_entry({"command": "x", "env": {"A": value}}, INPUTS)
    assert found.entry["env"] == {"A": converted}


def test_what_was_changed_or_has_no_effect_is_said() -> None:
    given = {
        "command": "x",
        "args": ["${input:api-key}"],
        "env": {"A": "$TOKEN"},
        "alwaysAllow": ["a"],
        "disabledTools": ["b"],
        "excludeTools": ["c"],
        "envFile": ".env",
        "oauth": {},
    }
    selections, approvals, login, file, asked, bare = convert_entry(given, INPUTS).notes
    assert selections.startswith("Left out: disabledTools, excludeTools; a review and")
    assert approvals.startswith("Left out: alwaysAllow; calls are asked about unless risk")
    assert login == "Left out: oauth; a login needs the key login: shared or personal."
    assert file == "Left out: envFile; give the variables of the file with env."
    assert asked == "${input:api-key} is the variable API_KEY of Larkspur."
    assert bare == "$TOKEN is read as a variable."


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"type": "ws", "url": "wss://example.com"}, "WebSocket is no transport"),
        ({"type": "builtin", "name": "developer"}, "a part of the program that wrote this"),
        ({"settings": {"a": 1}}, "an extension of an editor starts it"),
        ({"command": "${command:pick}"}, r"\$\{command:pick\} has a value in another program"),
        ({"headers": {"A": "{file:~/key}"}}, "has a value in another program"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        convert_entry(given, INPUTS)


def test_an_entry_of_ours_has_no_folder_of_a_project() -> None:
    with pytest.raises(ValueError, match="is the folder of a project; write its path"):
        convert_entry({"command": "${workspaceFolder}/x"})

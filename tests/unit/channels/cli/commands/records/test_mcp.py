"""`larkspur mcp`."""

import json
import os
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from internal.agent.domain.errors import LarkspurError
from internal.channels.cli.exit_codes import CONFIG, FAILED, OK, USAGE, WAITING
from tests.support.command_runner import CommandRunner
from tests.support.mcp_servers import HOSTILE

SERVER = (sys.executable, "-I", HOSTILE)


def states(run: CommandRunner) -> list[tuple[str, int]]:
    return [(one["state"], one["tools"]) for one in run("mcp", "--json").json]


def test_a_server_is_added_tested_reviewed_and_removed(run: CommandRunner) -> None:
    assert "No MCP servers" in run("mcp").err
    options = ("--env", "MY_TOKEN=canary-1234", "--risk", "read", "--network", "open")
    added = run("mcp", "add", "tested", *options, "--", *SERVER, "hidden")
    assert (added.code, states(run)) == (OK, [("not reviewed", 0)])
    assert "larkspur mcp review tested" in added.err
    assert "tested starts. Its tools (1): mcp__tested__echo\n" in added.err
    assert run("mcp", "test", "tested").code == OK
    refused = run("mcp", "review", "tested")
    assert (refused.code, states(run)) == (WAITING, [("not reviewed", 0)])
    for shown in (HOSTILE, "variables: MY_TOKEN", "network: network", "mcp__tested__echo (read"):
        assert shown in refused.out
    assert "\\u202eevil" in refused.out
    assert not {"\u202e", "\x1b"} & set(refused.out)
    assert "canary-1234" not in refused.out
    assert run("mcp", "review", "tested", "--yes").code == OK
    assert states(run) == [("offered", 1)]
    assert run("mcp", "remove", "tested").code == OK
    assert states(run) == []


def test_a_server_that_is_added_again_needs_another_review(run: CommandRunner) -> None:
    for _ in range(2):
        run("mcp", "add", "tested", "--", *SERVER, "plain")
        assert states(run) == [("not reviewed", 0)]
        run("mcp", "review", "tested", "--yes")
        assert states(run) == [("offered", 5)]
        run("mcp", "remove", "tested")


def test_the_file_of_a_project_is_only_imported_after_a_yes(
    run: CommandRunner, tmp_path: Path
) -> None:
    file = tmp_path / ".mcp.json"
    servers = {
        "tested": {
            "command": SERVER[0],
            "args": [*SERVER[1:], "plain"],
            "network": ["127.0.0.1:2375"],
            "allow_private_networks": True,
        },
        "web": {"url": "x"},
    }
    file.write_text(json.dumps({"mcpServers": servers}))
    refused = run("mcp", "import", str(file))
    assert (refused.code, states(run)) == (WAITING, [])
    for shown in (HOSTILE, "  network: 127.0.0.1:2375\n", "  also with private addresses\n"):
        assert shown in refused.out
    imported = run("mcp", "import", str(file), "--yes")
    assert imported.code == FAILED
    assert "web: the url must begin with https" in imported.err
    assert states(run) == [("not reviewed", 0)]
    with pytest.raises(LarkspurError, match="has no mcpServers"):
        run("mcp", "import", str(tmp_path / "missing.json"), "--yes")


def test_the_file_of_a_project_is_mentioned(
    run: CommandRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "larkspur mcp import" not in run("mcp").err
    (tmp_path / ".mcp.json").write_text("{}")
    assert "larkspur mcp import .mcp.json" in run("mcp").err


def test_a_server_that_does_not_start_says_why(run: CommandRunner) -> None:
    run("mcp", "add", "tested", "--", *SERVER, "exits")
    with pytest.raises(LarkspurError, match="it exited with 7: starting on stderr"):
        run("mcp", "test", "tested")
    assert states(run) == [("not reviewed", 0)]


def test_a_program_outside_of_path_is_added_with_its_path(
    run: CommandRunner, tmp_path: Path, environ: dict[str, str]
) -> None:
    program = tmp_path / "own-server"
    program.write_text(f"#!/bin/sh\nexec {shlex.join(SERVER)} plain\n")
    program.chmod(0o755)
    environ["PATH"] = f"{tmp_path}:{environ['PATH']}"
    assert run("mcp", "add", "tested", "--", "own-server", "x").code == OK
    assert f"\n{program} x\n" in run("mcp", "show", "tested").out


def test_a_server_that_was_never_accepted_is_replaced(run: CommandRunner) -> None:
    failed = run("mcp", "add", "tested", "--risk", "read", "--", *SERVER, "exits")
    assert failed.code == FAILED
    assert "it exited with 7: starting on stderr" in failed.err
    assert "Adding it again replaces it." in failed.err
    assert run("mcp", "add", "tested", "--", *SERVER, "plain").code == OK
    run("mcp", "review", "tested", "--yes")
    with pytest.raises(LarkspurError, match="already; remove it first: larkspur mcp remove tested"):
        run("mcp", "add", "tested", "--", *SERVER, "plain")
    assert states(run) == [("offered", 5)]


def test_a_program_that_does_not_exist_is_not_added(run: CommandRunner) -> None:
    refused = run("mcp", "add", "tested", "--yes", "--", "no-such-program")
    assert (refused.code, refused.message) == (FAILED, "tested was not added.")
    assert "there is no program no-such-program on this machine." in refused.err
    assert states(run) == []


@pytest.mark.needs("namespaces")
@pytest.mark.parametrize(
    ("exit_code", "sentence"),
    [
        (126, "a program that it needs may not be executed, or is outside of what the server sees"),
        (127, "a program that it needs is missing, or is outside of what the server sees"),
    ],
)
def test_an_isolated_server_without_its_programs_says_so(
    run: CommandRunner, environ: dict[str, str], exit_code: int, sentence: str
) -> None:
    environ["LARKSPUR_SANDBOX__PROVIDER"] = "bubblewrap"
    run("mcp", "add", "tested", "--", "sh", "-c", f"exit {exit_code}")
    with pytest.raises(LarkspurError, match=re.escape(f"{sentence} (exit code {exit_code})")):
        run("mcp", "test", "tested")


@pytest.mark.needs("namespaces")
@pytest.mark.slow
def test_an_isolated_server_that_was_added_without_its_files_says_what_it_lacks(
    run: CommandRunner, environ: dict[str, str]
) -> None:
    run("mcp", "add", "tested", "--", *SERVER, "plain")
    environ["LARKSPUR_SANDBOX__PROVIDER"] = "bubblewrap"
    with pytest.raises(LarkspurError, match=r"; add it with: larkspur mcp add ") as caught:
        run("mcp", "test", "tested")
    command = str(caught.value).partition("; add it with: larkspur ")[2].removesuffix(".")
    assert "--read " in command
    assert run(*shlex.split(command)).code == OK
    assert run("mcp", "test", "tested").code == OK


def test_a_url_has_headers(run: CommandRunner) -> None:
    address = ("--url", "http://127.0.0.1:1/mcp", "--private")
    run("mcp", "add", "web", *address, "--header", "Authorization: Bearer canary-5678")
    shown = run("mcp", "show", "web").out
    assert "headers: Authorization" in shown
    assert "canary-5678" not in shown


def test_a_wrong_command_line_is_explained(run: CommandRunner) -> None:
    for line in (
        ("show",),
        ("list", "name"),
        ("add",),
        ("add", "name"),
        ("add", "name", "--url", "https://example.com", "--", "x"),
        ("test", "name", "--", "more"),
    ):
        found = run("mcp", *line)
        assert (found.code, found.message[:6]) == (USAGE, "Usage:")
    found = run("mcp", "add", "name", "--env", "A", "--", "x")
    assert (found.code, found.message) == (USAGE, "--env must be NAME=VALUE.")
    with pytest.raises(LarkspurError, match="no MCP server none"):
        run("mcp", "show", "none")


def test_the_file_of_an_editor_is_imported_with_what_was_changed(
    run: CommandRunner, tmp_path: Path, environ: dict[str, str]
) -> None:
    environ["LEVEL"] = "low"
    file = tmp_path / "mcp.json"
    command = json.dumps(SERVER[0])
    args = json.dumps([*SERVER[1:], "plain"]).removesuffix("]")
    file.write_text(
        f"""{{"servers": {{  // of an editor
          "My clock": {{
            "command": {command},
            "args": {args}, "${{input:level}}", "${{env:LEVEL}}", "${{N:-no}}"],
          }},
          "socket": {{"type": "ws", "url": "wss://example.com"}},
        }}}}"""
    )
    imported = run("mcp", "import", str(file), "--yes")
    assert imported.code == FAILED
    assert "plain '${LEVEL}' '${LEVEL}' '${N:-no}'" in imported.out
    assert "'My clock' is called my-clock here." in imported.out
    assert "${input:level} is the variable LEVEL of Larkspur." in imported.out
    assert "socket: WebSocket is no transport of the protocol" in imported.err
    assert "plain low low no" in run("mcp", "show", "my-clock").out


def test_the_entry_of_a_client_is_printed_or_the_clients_are_listed(
    run: CommandRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "other"
    monkeypatch.setenv("LARKSPUR_HOME", str(home))
    names = [line.split()[0] for line in run("mcp", "serve", "--print-config").out.splitlines()]
    assert {"claude-code", "codex", "gemini", "cursor", "vscode"} <= set(names)
    printed = run("mcp", "serve", "--print-config", "codex", "--server", "https://a.example")
    entry = tomllib.loads(printed.out)["mcp_servers"]["larkspur"]
    assert Path(entry["command"]).is_absolute()
    assert os.access(entry["command"], os.X_OK)
    assert entry["args"] == ["mcp", "serve", "--server", "https://a.example"]
    assert entry["env"] == {"LARKSPUR_HOME": str(home)}
    assert "codex mcp add larkspur" in printed.err
    assert f"looked for in {home}" in run("mcp", "serve", "--print-config", "cursor").err
    assert run("mcp", "serve", "--print-config", "zed", "--json").json["entry"]
    unknown = run("mcp", "serve", "--print-config", "nope")
    assert (unknown.code, "claude-code, claude-desktop" in unknown.message) == (USAGE, True)
    assert run("mcp", "list", "--print-config", "codex").code == USAGE
    login = run("mcp", "serve", "--print-config", "codex", "--server", "https://a:canary@b.example")
    assert (login.code, "canary" in login.message + login.out) == (USAGE, False)
    monkeypatch.setenv("LARKSPUR_HOME", "/srv/$HOME")
    assert run("mcp", "serve", "--print-config", "codex").code == CONFIG

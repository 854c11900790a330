"""The servers of the settings and of mcp.json."""

import json
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import NotFound
from internal.mcp.definition_files import DefinitionFiles
from internal.mcp.definitions import DefinitionError


def files(home: Path, **settings: Any) -> DefinitionFiles:
    return DefinitionFiles(home, settings, lambda value, _where: value)


def write(home: Path, servers: Any) -> None:
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


def test_both_places_are_merged_and_one_wrong_server_is_only_reported(tmp_path: Path) -> None:
    write(
        tmp_path, {"git": {"command": "git-mcp"}, "bad": {"command": 1}, "time": {"command": "b"}}
    )
    found = files(tmp_path, time={"command": "a"}, worse=3).read()
    assert {name: one.command for name, one in found.servers.items()} == {
        "time": "a",
        "git": "git-mcp",
    }
    assert set(found.problems) == {"worse", "bad", "time"}
    assert "is also in mcp.servers" in found.problems["time"]


def test_a_damaged_file_leaves_the_servers_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{\n"mcpServers": [}')
    found = files(tmp_path, time={"command": "a"}).read()
    assert [*found.servers] == ["time"]
    assert found.problems[""].startswith(f"{tmp_path}/mcp.json:2: this is not JSON")


@pytest.mark.parametrize("content", ["[]", '{"mcpServers": 3}', "\xff", "[" * 100_000])
def test_a_file_that_is_no_list_of_servers_is_reported(tmp_path: Path, content: str) -> None:
    (tmp_path / "mcp.json").write_text(content, encoding="latin-1")
    assert set(files(tmp_path).read().problems) == {""}


def test_a_change_of_the_file_is_read(tmp_path: Path) -> None:
    here = files(tmp_path)
    assert not here.read().servers
    here.add("time", {"command": "a"})
    assert [*here.read().servers] == ["time"]
    here.remove("time")
    assert not here.read().servers


def test_adding_keeps_what_else_is_written_and_refuses_a_second_server(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"other": 1, "mcpServers": {"git": {"command": "g"}}}')
    here = files(tmp_path, web={"command": "w"})
    here.add("time", {"command": "a", "env": {"KEY": "${KEY}"}})
    assert json.loads((tmp_path / "mcp.json").read_text()) == {
        "other": 1,
        "mcpServers": {
            "git": {"command": "g"},
            "time": {"command": "a", "env": {"KEY": "${KEY}"}},
        },
    }
    assert (tmp_path / "mcp.json").stat().st_mode & 0o777 == 0o600
    for name in ("git", "web"):
        with pytest.raises(DefinitionError, match="already"):
            here.add(name, {"command": "a"})
    with pytest.raises(DefinitionError, match="either a command or a url"):
        here.add("empty", {})
    with pytest.raises(NotFound, match=r"it is in the setting mcp\.servers"):
        here.remove("web")


COMMENTED = """{
  // the servers of the team
  "mcpServers": {
    "time": {"command": "a", "args": ["//no-comment", "/* nor this */",],}, /* the
    clock */
    "My server": {"command": "b"},
  },
}
"""


def test_comments_and_trailing_commas_are_read_and_never_written_away(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(COMMENTED)
    here = files(tmp_path)
    assert here.read().servers["time"].args == ("//no-comment", "/* nor this */")
    assert here.read().problems["My server"].endswith("such as my-server.")
    for change in (lambda: here.add("git", {"command": "g"}), lambda: here.remove("time")):
        with pytest.raises(DefinitionError, match="has comments or trailing commas"):
            change()
    assert file.read_text() == COMMENTED


def test_the_servers_of_another_program_are_named_not_read(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"servers": {"time": {"command": "a"}}}')
    found = files(tmp_path).read()
    assert not found.servers
    assert f"larkspur mcp import {tmp_path}/mcp.json" in found.problems[""]

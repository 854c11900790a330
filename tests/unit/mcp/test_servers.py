"""Offered tools and errors of calls."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import ToolError
from internal.mcp.definition_files import DefinitionFiles
from internal.mcp.definitions import ServerDefinition
from internal.mcp.limits import ServerFailure
from internal.mcp.login.token_file import TokenFile
from internal.mcp.pins import McpPins
from internal.mcp.servers import McpServers
from tests.support.mcp_servers import hostile_entry
from tests.support.tools import native_sandbox


class Setting:
    """Servers of a home folder, which a sandbox without isolation runs."""

    def __init__(self, home: Path, **entries: Any) -> None:
        files = DefinitionFiles(home, entries, lambda value, _where: value)
        self.servers = McpServers(files, McpPins(home), version="0", logins=TokenFile(home))
        self.home = home

    def definition(self, name: str) -> ServerDefinition:
        return self.servers.files.read().servers[name]

    async def accept(self, name: str) -> None:
        found = await self.servers.list_tools(self.definition(name))
        self.servers.pins.accept(name, found)

    async def call(self, name: str, **arguments: Any) -> str:
        result = await self.servers.call(name, arguments, lambda *_: None, principal="local")
        return str(result["content"][0]["text"])


@pytest.fixture
async def setting(home: Path) -> AsyncGenerator[Setting]:
    made = Setting(
        home,
        one=hostile_entry("plain"),
        two=hostile_entry("shadow"),
        off={**hostile_entry("plain"), "disabled": True},
    )
    folder = home / "server-homes"
    folder.mkdir()

    def home_of(_session: str) -> str:
        return str(folder)

    async with made.servers.running(native_sandbox(folder), home_of):
        yield made


async def test_only_accepted_tools_are_offered(setting: Setting) -> None:
    assert setting.servers.offer().tools == {}
    assert [*setting.servers.offer().withheld] == [
        ("mcp__one", "not reviewed"),
        ("mcp__two", "not reviewed"),
    ]
    await setting.accept("one")
    offer = setting.servers.offer()
    assert {one.server.name for one in offer.tools.values()} == {"one"}
    assert offer.withheld == (("mcp__two", "not reviewed"),)
    assert setting.servers.offer() is offer
    assert await setting.call("mcp__one__echo", text="hi") == "hi"
    setting.servers.pins.withdraw("one")
    assert setting.servers.offer().tools == {}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("mcp__two__shell", "mcp__two__shell is withheld: not reviewed"),
        ("mcp__none__x", "there is no tool mcp__none__x"),
        ("mcp__off__echo", "there is no tool mcp__off__echo"),
    ],
)
async def test_other_calls_are_refused_without_a_start(
    setting: Setting, name: str, reason: str
) -> None:
    with pytest.raises(ToolError, match=reason):
        await setting.call(name)
    assert not (setting.home / "mcp").exists()


async def test_a_crash_is_an_error_of_the_call(setting: Setting) -> None:
    await setting.accept("one")
    with pytest.raises(
        ToolError, match="The MCP server one cannot be used: it ended during the call: it exited"
    ):
        await setting.call("mcp__one__crash")
    assert await setting.call("mcp__one__echo", text="again") == "again"


async def test_nothing_is_started_outside_of_the_block(home: Path) -> None:
    setting = Setting(home, one=hostile_entry("plain"))
    with pytest.raises(ServerFailure, match="cannot be started here"):
        await setting.servers.list_tools(setting.definition("one"))


async def test_damaged_pins_offer_nothing(setting: Setting) -> None:
    await setting.accept("one")
    (setting.home / "mcp-pins.json").write_text("{")
    assert setting.servers.offer().tools == {}

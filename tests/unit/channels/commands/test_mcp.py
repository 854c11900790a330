"""The list of MCP servers, as every channel shows it."""

from internal.channels.commands.mcp import COMMAND
from internal.channels.commands.records import ListedMcpServer
from tests.support.shared_commands import KeptChannel

OFFERED = ListedMcpServer("a", "offered", 3, "server --stdio", "", ["It is slow."])
DISABLED = ListedMcpServer("b", "disabled", 0, "https://b.example", "", [])
UNUSABLE = ListedMcpServer("c", "not usable", 0, "", "It has no command.", [])


async def test_without_servers_the_way_to_add_one_is_said(channel: KeptChannel) -> None:
    await COMMAND.handler(channel, "")
    assert channel.said == ["No MCP servers. Add one: larkspur mcp add NAME -- COMMAND"]


async def test_rows_have_the_address_or_the_problem(channel: KeptChannel) -> None:
    channel.servers = [OFFERED, DISABLED]
    await COMMAND.handler(channel, "")
    assert channel.said == []
    assert channel.notes == ["It is slow."]
    channel.servers = [UNUSABLE]
    await COMMAND.handler(channel, "")
    assert "larkspur mcp review NAME" in channel.said[0]
    assert [tuple(row.values()) for row in channel.rows] == [
        ("a", "offered", "3", "server --stdio"),
        ("b", "disabled", "0", "https://b.example"),
        ("c", "not usable", "0", "It has no command."),
    ]

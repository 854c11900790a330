"""The command about the MCP servers of the gateway."""

from internal.channels.commands.command import ChannelContext, SharedCommand


async def _list(context: ChannelContext, _argument: str) -> None:
    """List the MCP servers with their states, and how to review a withheld one."""
    texts = context.texts_of(COMMAND.name)
    found = await (await context.open_gateway()).mcp_servers()
    if not found:
        context.say(texts("none"))
        return
    rows = [
        {
            "name": each.name,
            "state": texts(each.state.replace(" ", "_")),
            "tools": str(each.tools),
            "target": each.target or each.problem,
        }
        for each in found
    ]
    context.say_rows(texts, rows, [warning for each in found for warning in each.warnings])
    if any(each.state not in {"offered", "disabled"} for each in found):
        context.say(texts("withheld"))


COMMAND = SharedCommand("mcp", _list)

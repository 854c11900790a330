"""The command about the MCP servers of the gateway."""

from internal.channels.cli.repl.commands.context import SlashContext


async def mcp(context: SlashContext, _arguments: str) -> None:
    """List the MCP servers with their states, and say how a withheld one is reviewed."""
    session = context.session
    found = await (await session.ready()).client.mcp_servers()
    if not found:
        context.print_message("no_mcp_servers")
        return
    context.print_table(
        [
            (
                one.name,
                session.messages(f"mcp_{one.state.replace(' ', '_')}"),
                str(one.tools),
                one.target or one.problem,
            )
            for one in found
        ]
    )
    context.print_notes(*(warning for one in found for warning in one.warnings))
    if any(one.state not in {"offered", "disabled"} for one in found):
        context.print_message("mcp_withheld")

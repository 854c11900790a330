"""The command about the background commands of a session."""

from internal.channels.cli.id_lookup import find_id
from internal.channels.cli.render.text import truncate_line
from internal.channels.cli.repl.commands.context import MAX_CELL_WIDTH, SlashContext

USAGE = "[stop ID]"


async def ps(context: SlashContext, arguments: str) -> None:
    """List the background commands of this session, or stop one."""
    session = context.session
    verb, _, wanted = arguments.partition(" ")
    if (verb, bool(wanted)) not in {("", False), ("stop", True)}:
        context.print_message("usage", usage=f"/ps {USAGE}")
        return
    if session.session_id is None:
        context.print_message("no_session_yet")
        return
    client = (await session.ready()).client
    found = await client.commands(session.session_id)
    if not found:
        context.print_message("no_commands")
    elif not wanted:
        messages = session.messages
        context.print_table(
            [
                (
                    one.command_id,
                    messages("command_runs")
                    if one.ended is None
                    else messages("command_ended", code=one.exit_code),
                    truncate_line(one.command, MAX_CELL_WIDTH),
                )
                for one in found
            ]
        )
    else:
        command_id = find_id(wanted.strip(), [one.command_id for one in found])
        await client.stop_command(session.session_id, command_id)
        context.print_message("command_stopped", id=command_id)

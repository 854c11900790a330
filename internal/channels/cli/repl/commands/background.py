"""The command about the background commands of a session."""

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.id_lookup import find_id
from internal.channels.cli.records import BackgroundCommandItem
from internal.channels.cli.render.text import StyledLine, sanitize, truncate_line
from internal.channels.cli.repl.commands.context import MAX_CELL_WIDTH, SlashContext

USAGE = "[NAME | stop NAME]"
_MAX_LINES = 40
"""The last lines of the output of a command that are shown."""


async def ps(context: SlashContext, arguments: str) -> None:
    """List the background commands of this session, show the output of one, or stop one."""
    session = context.session
    verb, _, stopped = arguments.partition(" ")
    if session.session_id is None:
        context.print_message("no_session_yet")
        return
    if (stopped and verb != "stop") or arguments == "stop":
        context.print_message("usage", usage=f"/ps {USAGE}")
        return
    client = (await session.ready()).client
    found = await client.commands(session.session_id)
    if not found:
        context.print_message("no_commands")
    elif not arguments:
        context.print_table([_cells(context, one) for one in found])
    elif stopped:
        command_id = _find(stopped, found)
        await client.stop_command(session.session_id, command_id)
        context.print_message("command_stopped", id=command_id)
    else:
        await _show_output(context, client, session.session_id, _find(arguments, found))


def _cells(context: SlashContext, one: BackgroundCommandItem) -> tuple[str, ...]:
    messages = context.session.messages
    if one.ended is None:
        state = messages("command_runs")
    elif one.exit_code is None:
        state = messages("command_is_over")
    else:
        state = messages("command_ended", code=one.exit_code)
    return one.command_id, state, truncate_line(one.command, MAX_CELL_WIDTH), one.address


def _find(wanted: str, found: list[BackgroundCommandItem]) -> str:
    """Return the id of a command that is named by its id or the beginning of its words."""
    wanted = wanted.strip()
    named = [one.command_id for one in found if wanted in one.command.split()]
    known = [one.command_id for one in found]
    if named and not any(each.startswith(wanted) for each in known):
        return named[-1]
    return find_id(wanted, known)


async def _show_output(
    context: SlashContext, client: GatewayClient, session_id: str, command_id: str
) -> None:
    messages = context.session.messages
    output = await client.command_output(session_id, command_id)
    lines = output.text.splitlines()
    if output.missing_bytes or len(lines) > _MAX_LINES:
        context.print_message("command_earlier")
    indent = (("", "  "),)
    context.session.note(
        *(
            StyledLine((("", sanitize(line)),), indent, indent, verbatim=True)
            for line in lines[-_MAX_LINES:]
        )
    )
    if not lines:
        context.print_message("command_silent")
    end = output.end or messages("command_runs")
    context.print_notes(*(sanitize(line) for line in end.splitlines()))

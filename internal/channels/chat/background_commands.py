"""The command about the background commands of a conversation."""

from internal.agent.domain.errors import NotFound
from internal.agent.domain.text import truncate_line
from internal.agent.ports.commands import BackgroundCommand
from internal.channels.chat.answers import escape_markdown
from internal.channels.chat.command_context import MAX_TASK_LENGTH, ChatContext, principal_for
from internal.i18n.chat import ChatPhrases

_MAX_SHOWN_COMMANDS = 5
"""Background commands whose last lines are shown, the newest ones."""
_MAX_OUTPUT_LINES = 5


async def list_commands(context: ChatContext, _argument: str) -> str:
    """Return the background commands of the conversation with their last output."""
    phrases, newest = context.phrases, await context.list_newest()
    if not newest:
        return phrases("no_commands")
    principal = principal_for(newest[0], context.actor.principal)
    try:
        found = await context.gateway.commands.list_all(newest[0].session_id, principal)
    except NotFound:  # the conversation of others
        found = []
    if not found:
        return phrases("no_commands")
    lines: list[str] = []
    for one in found:
        status = _command_status(one, phrases)
        command = escape_markdown(truncate_line(one.command, MAX_TASK_LENGTH))
        lines.append(phrases("command_line", id=one.id, status=status, command=command))
        if one.address:
            lines.append(phrases("command_address", address=escape_markdown(one.address)))
    for one in found[-_MAX_SHOWN_COMMANDS:]:
        output = await context.gateway.commands.read(newest[0].session_id, one.id, principal)
        if last := output.text.splitlines()[-_MAX_OUTPUT_LINES:]:
            shown = (escape_markdown(truncate_line(line, MAX_TASK_LENGTH)) for line in last)
            text = "\n".join(f"> {line}" for line in shown)
            lines.append(phrases("command_output", id=one.id, output=text))
    return phrases("commands", commands="\n".join(lines))


async def stop_command(context: ChatContext, command_id: str) -> str:
    """Stop a background command of the conversation and return the reply."""
    newest = await context.list_newest()
    try:
        task = newest[0]
        principal = principal_for(task, context.actor.principal)
        await context.gateway.commands.stop(task.session_id, command_id, principal)
    except (IndexError, NotFound):
        return context.phrases("nothing_to_stop")
    return context.phrases("command_stopped", id=command_id)


def _command_status(command: BackgroundCommand, phrases: ChatPhrases) -> str:
    if command.ended is None:
        return phrases("command_runs")
    if command.exit_code is None or command.exit_code < 0:
        return phrases("command_is_over")
    return phrases("command_ended", code=command.exit_code)

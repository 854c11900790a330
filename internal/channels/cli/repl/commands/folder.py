"""Commands about the folder of a session."""

import asyncio

from internal.agent.domain.text import format_size
from internal.channels.cli.repl.commands.context import SlashContext
from internal.git.changes import uncommitted_changes

_MAX_LINES = 400
_MAX_FILES = 5
_MAX_LINES_EACH = 40
_INSTRUCTIONS = "AGENTS.md"


async def diff(context: SlashContext, arguments: str) -> None:
    """Show the changes in the folder since the last commit, else the changes of this session.

    With the name of a file, show the changes that a run of this session made in it.
    """
    session = context.session
    if arguments:
        await _diff_file(context, arguments)
        return
    changes = await asyncio.to_thread(uncommitted_changes, str(context.folder))
    if changes is None:
        changes = "\n".join(session.view.changes)
        context.print_message("diff_session" if changes else "diff_none")
    else:
        context.print_message("diff_git" if changes else "diff_none")
    _print_diff(context, changes)


async def _diff_file(context: SlashContext, name: str) -> None:
    session_id = context.session.session_id
    if session_id is None:
        context.print_message("no_session_yet")
        return
    client = (await context.session.ready()).client
    changes = await client.changes(session_id)
    found = [one for one in changes if one.path == name] or [
        one for one in changes if f"/{one.path}".endswith(f"/{name}")
    ]
    if not found:
        context.print_message("diff_no_file", name=name)
        return
    for one in found[:_MAX_FILES]:
        text, note = await client.change_diff(session_id, one.change_id)
        context.session.note(context.session.view.rows.changed_file(one))
        _print_diff(context, text)
        if note:
            context.print_message(f"diff_{note}")


def _print_diff(context: SlashContext, text: str) -> None:
    session = context.session
    lines = list(session.view.rows.change(text, names=True))
    session.note(*lines[:_MAX_LINES])
    if len(lines) > _MAX_LINES:
        context.print_message("more_lines", count=len(lines) - _MAX_LINES)


async def init(context: SlashContext, _arguments: str) -> None:
    """Start a task that writes the instructions file of the folder, asking before it writes."""
    if not context.is_busy():
        key = "init_update" if (context.folder / _INSTRUCTIONS).exists() else "init_task"
        text = context.session.messages(key, file=_INSTRUCTIONS)
        context.session.send(text, {"permission_mode": "ask"})


async def instructions(context: SlashContext, _arguments: str) -> None:
    """Show the instructions that apply to tasks in the folder, and their sizes."""
    services, messages = await context.session.ready(), context.session.messages
    found = await asyncio.to_thread(services.instructions, context.folder)
    if not found:
        context.print_message("instructions_none", file=_INSTRUCTIONS)
    for one in found:
        name = messages(f"instructions_{one.source}", name=one.name)
        context.print_message("instructions_of", name=name, size=format_size(one.size))
        lines = one.text.splitlines()
        context.print_notes(*lines[:_MAX_LINES_EACH])
        if len(lines) > _MAX_LINES_EACH:
            context.print_message("more_lines", count=len(lines) - _MAX_LINES_EACH)

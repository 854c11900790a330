"""Commands about the conversation and the model's view of it."""

import base64

from internal.channels.cli.clipboard import copy_text
from internal.channels.cli.render.event_rows import align_columns
from internal.channels.cli.render.text import truncate_line
from internal.channels.cli.repl.commands.context import SlashContext
from internal.i18n.quantities import format_count

_BAR_WIDTH = 14
"""Cells of the bar of a part that fills the whole window; a row has less than 60 cells."""
_MAX_FILE_WIDTH = 24
_LEAST_SHARE = 0.005
_MAX_TERMINAL_COPY = 74_000
"""Terminals ignore a longer clipboard sequence, in bytes."""


async def clear(context: SlashContext, _arguments: str) -> None:
    """Start a new session on an empty screen."""
    if not context.is_busy():
        context.session.begin_session()
        context.clear_screen()
        context.print_message("new_session")


async def context_use(context: SlashContext, _arguments: str) -> None:
    """Show the contents of the context window at the last request."""
    if not _print_use(context):
        return
    request, messages = context.session.view.request, context.session.messages
    held = sum(tokens for _, _, tokens in request.parts)
    scale = request.input / held if held else 0.0  # the provider counts, the parts are estimates
    parts = [
        (messages(f"context_{kind}", name=truncate_line(name, _MAX_FILE_WIDTH)), tokens * scale)
        for kind, name, tokens in request.parts
    ]
    free = max(request.window - request.input - request.reserved, 0)
    parts += [(messages("context_free"), free), (messages("context_reserved"), request.reserved)]
    context.session.note(*align_columns([_part_row(context, *part) for part in parts]))
    context.print_message("context_cached", count=format_count(request.cached))
    context.print_message("context_reply", count=format_count(request.output))


def _part_row(context: SlashContext, title: str, tokens: float) -> tuple[str, ...]:
    """Return a row: title, tokens, percent of the window and a bar."""
    view = context.session.view
    share = tokens / view.request.window
    percent = f"{share:.0%}" if not tokens or share >= _LEAST_SHARE else "<1%"
    bar = view.rows.glyphs.fill * round(share * _BAR_WIDTH)
    return title, format_count(round(tokens)).rjust(6), percent.rjust(4), bar


async def compact(context: SlashContext, _arguments: str) -> None:
    """Describe how the context is shortened, and the used part of it."""
    context.print_message("compact_automatic")
    _print_use(context)


async def copy(context: SlashContext, _arguments: str) -> None:
    """Copy the last answer."""
    text = context.session.view.last_answer
    if not text:
        context.print_message("nothing_to_copy")
        return
    program = await copy_text(text)
    encoded = base64.b64encode(text.encode("utf-8", "replace")).decode()
    if len(encoded) <= _MAX_TERMINAL_COPY:
        context.write(f"\x1b]52;c;{encoded}\x07")
        program = program or "OSC 52"
    context.print_message("copied" if program else "copy_failed", program=program)


def _print_use(context: SlashContext) -> bool:
    """Print how full the context window is. Return False if no request was made yet."""
    request = context.session.view.request
    if not request.window:
        context.print_message("context_unknown")
        return False
    context.print_message(
        "context_used",
        used=format_count(request.input),
        window=format_count(request.window),
        percent=request.percent,
    )
    return True

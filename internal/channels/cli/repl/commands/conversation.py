"""Commands about the conversation and what the model sees of it."""

import base64
from asyncio import to_thread

from internal.channels.cli.clipboard import copy_text
from internal.channels.cli.command_output import format_tokens
from internal.channels.cli.repl.commands.context import SlashContext

_CHARACTERS_PER_TOKEN = 4
"""A rough estimate; the provider's own count is shown for the whole request."""
_MAX_TERMINAL_COPY = 74_000
"""Terminals ignore a longer clipboard sequence, in bytes."""


async def clear(context: SlashContext, _arguments: str) -> None:
    """Start a new session on an empty screen."""
    if not context.is_busy():
        context.session.leave_session()
        context.clear_screen()
        context.print_message("new_session")


async def context_use(context: SlashContext, _arguments: str) -> None:
    """Show what fills the context window, from the usage of the last request."""
    session = context.session
    if not await _print_use(context):
        return
    last = session.view.request
    services = await session.ready()
    described = sum(len(one.name) + len(one.description) for one in services.tools())
    messages = await services.client.transcript(session.session_id or "")
    written = sum(len(one.text) for one in messages)
    tools, conversation = (size // _CHARACTERS_PER_TOKEN for size in (described, written))
    used = tools + conversation
    for one in await to_thread(services.instructions, context.folder):
        count = len(one.text) // _CHARACTERS_PER_TOKEN
        used += count
        name = context.session.messages(f"instructions_{one.source}", name=one.name)
        context.print_message("context_instructions", count=format_tokens(count), name=name)
    rest = max(last.input - used, 0)
    for name, count in (
        ("context_tools", tools),
        ("context_conversation", conversation),
        ("context_rest", rest),
        ("context_cached", last.cached),
        ("context_reply", last.output),
    ):
        context.print_message(name, count=format_tokens(count))


async def compact(context: SlashContext, _arguments: str) -> None:
    """Say how the context is shortened, and how full it is."""
    context.print_message("compact_automatic")
    await _print_use(context)


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


async def _print_use(context: SlashContext) -> bool:
    """Print how full the context window is. Return False if no request was made yet."""
    session = context.session
    last = session.view.request
    if not last.input:
        context.print_message("context_unknown")
        return False
    window = await context_window(context, last.model)
    if window:
        context.print_message(
            "context_used",
            used=format_tokens(last.input),
            window=format_tokens(window),
            percent=round(100 * last.input / window),
        )
    else:
        context.print_message("context_used_alone", used=format_tokens(last.input))
    return True


async def context_window(context: SlashContext, model: str) -> int:
    """Return the context window of a model in tokens, 0 if it is unknown."""
    if not context.models:
        context.models = await to_thread((await context.session.ready()).models)
    return next((one.context_window or 0 for one in context.models if one.model == model), 0)

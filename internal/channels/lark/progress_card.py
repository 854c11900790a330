"""The progress of a run as a Lark message: a card, or a text that is edited."""

from internal.channels.chat.transport import RunContent, RunPhase
from internal.channels.lark.api import as_json
from internal.channels.lark.message_format import markdown_card

PROGRESS_MARK = "⏳\u200b"
"""The beginning of a text that shows progress."""
MAX_TEXT_EDITS = 18
"""Lark accepts 20 edits of a text; the last two are kept for the final state."""

_COLORS: dict[RunPhase, str] = {
    "queued": "grey",
    "working": "blue",
    "waiting": "orange",
    "done": "green",
    "failed": "red",
    "cancelled": "grey",
}


def progress_card(content: RunContent) -> str:
    """Return the card as JSON."""
    body = "\n".join(content.lines) or content.phrases("progress_thinking")
    return as_json(markdown_card(body, content.title, _COLORS[content.phase]))


def progress_text(content: RunContent) -> str:
    """Return the text."""
    return "\n".join([f"{PROGRESS_MARK} {content.title}", *content.lines])

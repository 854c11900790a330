"""Formats of outgoing messages: card, rich text, text, file and progress. Pure."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from internal.channels.chat.transport import RunContent, RunPhase
from internal.channels.lark.api import as_json
from internal.i18n.chat import ChatPhrases

MAX_RICH_BYTES, MAX_TEXT_BYTES, MAX_TABLES = 28 * 1024, 140 * 1024, 5
"""Bytes of a card or post and of a text (Lark accepts 30 KB and 150 KB), tables in a card."""
MAX_NESTING, MAX_COLUMNS = 8, 50
"""Quotes and lists inside of each other, and columns of a table; Lark documents no limit."""
_SUMMARY = 4 * 1024
_TAG = re.compile(r"<(?=/?(?:at|person)\b)", re.IGNORECASE)
_LABEL = re.compile(r"[^\]\n]*(?:\]\(?|\n|\Z)")  # of a link or image if it ends with "]("
_TABLE = re.compile(r"^[ \t]*\|.*\n[ \t:|]*-[ \t:|-]*\n(?:^[ \t]*\|.*(?:\n|\Z))*", re.MULTILINE)
_CONTAINER = r"(?:[ \t]*(?:>|(?:[-*+]|[0-9]{1,9}[.)])[ \t]))"
_DEEP_LINE = re.compile(rf"^({_CONTAINER}{{{MAX_NESTING}}}){_CONTAINER}+", re.MULTILINE)
_DEEP_ITEM = re.compile(
    rf"^([ \t]{{{4 * MAX_NESTING}}})[ \t]+(?=[-*+>]|[0-9]{{1,9}}[.)])", re.MULTILINE
)
_SENTENCE_ENDS = re.compile("[\n\u3002\uff01\uff1f.!?]\\s*")
_FENCED = re.compile(r"(^ {0,3}```.*?(?:^ {0,3}```[ \t]*$|\Z))", re.MULTILINE | re.DOTALL)


class MessagePart(NamedTuple):
    """A message to send.

    `file` is uploaded first and its key becomes the content. A `spare` part may be dropped if Lark
    rejects only it.
    """

    kind: str
    content: str
    file: tuple[str, bytes] | None = None
    spare: bool = False


Rendering = tuple[str, tuple[MessagePart, ...]]
"""The name of a format and the messages of a content in that format."""


def render_answer(answer: str, phrases: ChatPhrases) -> Sequence[Rendering]:
    """Return the renderings of an answer, the best first; each is complete.

    Mentions and images written by the model are shown as text.
    """
    safe = limit_nesting(neutralize_markup(answer))
    plain: Rendering = ("text", text_parts(safe, MAX_TEXT_BYTES))
    if byte_length(as_json(as_json(markdown_card(safe)))) > MAX_RICH_BYTES:
        return (("file", _file(safe, answer, phrases)), plain)
    found: list[Rendering] = []
    few = tables_as_code(safe, MAX_TABLES)
    none = tables_as_code(safe, 0)
    found.append(("card", (MessagePart("interactive", as_json(markdown_card(few))),)))
    if none != few:
        found.append(("plain-card", (MessagePart("interactive", as_json(markdown_card(none))),)))
    return (*found, ("post", (post_part(none),)), plain)


def send_uuid(key: str, form: str, number: int) -> str:
    """Return the `uuid` under which Lark sends a message only once."""
    return hashlib.sha256(f"{key}\n{form}\n{number}".encode()).hexdigest()[:40]


def markdown_card(text: str, title: str = "", colour: str = "") -> dict[str, Any]:
    """Return a card that can be patched."""
    card: dict[str, Any] = {
        "schema": "2.0",
        "config": {"update_multi": True, "width_mode": "fill"},
        "body": {"elements": [{"tag": "markdown", "content": text}]},
    }
    if title:
        card["header"] = {"title": {"tag": "plain_text", "content": title}, "template": colour}
    return card


def tables_as_code(text: str, max_tables: int) -> str:
    """Return Markdown that keeps its first `max_tables` tables; others become code blocks.

    So do tables of more than `MAX_COLUMNS` columns.
    """
    count = 0

    def keep(found: re.Match[str]) -> str:
        nonlocal count
        count += 1
        is_kept = count <= max_tables and found[0].count("|", 0, found[0].find("\n")) <= MAX_COLUMNS
        return found[0] if is_kept else f"```\n{found[0].rstrip()}\n```\n"

    parts = enumerate(_FENCED.split(text))  # odd ones are fenced
    return "".join(part if number % 2 else _TABLE.sub(keep, part) for number, part in parts)


def neutralize_markup(text: str) -> str:
    """Return Markdown in which mentions and images are plain text."""

    def without_image(label: re.Match[str]) -> str:
        return label[0].replace("![", "[") if label[0].endswith("](") else label[0]

    return _LABEL.sub(without_image, _TAG.sub("<\u200b", text))


def limit_nesting(text: str) -> str:
    """Return Markdown in which quotes and lists are at most `MAX_NESTING` levels deep.

    The text of deeper ones is kept. Code blocks are not changed.
    """

    def limited(part: str) -> str:
        return _DEEP_ITEM.sub(r"\1", _DEEP_LINE.sub(r"\1", part))

    parts = enumerate(_FENCED.split(text))  # odd ones are fenced
    return "".join(part if number % 2 else limited(part) for number, part in parts)


def text_parts(text: str, max_bytes: int) -> tuple[MessagePart, ...]:
    """Return text messages of at max_bytes `max_bytes` each."""
    return tuple(
        MessagePart("text", as_json({"text": piece})) for piece in split_bytes(text, max_bytes)
    )


def post_part(text: str) -> MessagePart:
    """Return a rich text message with Markdown."""
    content = [[{"tag": "md", "text": text}]]
    return MessagePart("post", as_json({"zh_cn": {"title": "", "content": content}}))


def _file(safe: str, answer: str, phrases: ChatPhrases) -> tuple[MessagePart, ...]:
    notice = phrases("long_answer", head=tables_as_code(truncate_bytes(safe, _SUMMARY), 0))
    content = answer.encode("utf-8", "replace")
    return post_part(notice), MessagePart("file", "", (phrases("file_name"), content))


def byte_length(text: str) -> int:
    """Return the length in UTF-8."""
    return len(text.encode("utf-8", "replace"))


def truncate_bytes(text: str, max_bytes: int) -> str:
    """Return the beginning in at max_bytes `max_bytes`, ended at a sentence if possible."""
    cut = text.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")
    if cut == text:
        return text
    ends = [found.end() for found in _SENTENCE_ENDS.finditer(cut)]
    good = next((end for end in reversed(ends) if end > len(cut) // 2), len(cut))
    return cut[:good].rstrip()


def split_bytes(text: str, max_bytes: int) -> list[str]:
    """Return the text in non-blank pieces of at max_bytes `max_bytes`."""
    pieces: list[str] = []
    while text.strip():
        pieces.append(truncate_bytes(text, max_bytes))
        text = text[len(pieces[-1]) :].lstrip()
    return pieces


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

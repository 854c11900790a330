"""Formats of outgoing messages: card, rich text, text, file and progress. Pure."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec

from internal.channels.chat.transport import FileContent, RunContent, RunPhase
from internal.channels.lark.answer_pages import break_long_lines, split_pages
from internal.channels.lark.api import as_json
from internal.channels.lark.lark_markdown import (
    AnswerBlock,
    as_card_markdown,
    as_plain_text,
    as_summary,
    escape_active,
    parse_markdown,
)
from internal.channels.lark.question_form import folded_text, plain_text, stop_button
from internal.i18n.chat import ChatPhrases

MAX_RICH_BYTES, MAX_TEXT_BYTES, MAX_TABLES = 28 * 1024, 140 * 1024, 5
"""Bytes of a card or post and of a text (Lark accepts 30 KB and 150 KB), tables in a card."""
MAX_PAGES = 4
"""Cards of an answer; a longer one is a file after its beginning."""
_BEGINNING, _SUMMARY_CHARS = 4 * 1024, 100
_CARD_OVERHEAD, _BLOCK_OVERHEAD = 1024, 32
_SENTENCE_ENDS = re.compile("[\n\u3002\uff01\uff1f.!?]\\s*")

MAX_PICTURE_BYTES, MAX_FILE_BYTES = 10 * 1024 * 1024, 30 * 1024 * 1024
"""Lark accepts no larger uploads, and no empty ones."""
_PICTURE_TYPES = frozenset(
    {"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/tiff"}
)
_FILE_TYPES = {
    ".pdf": "pdf",
    ".doc": "doc",
    ".docx": "doc",
    ".xls": "xls",
    ".xlsx": "xls",
    ".ppt": "ppt",
    ".pptx": "ppt",
}

PostElement = dict[str, str]
"""An element of a rich text, such as `{"tag": "text", "text": "…"}`."""


class MessagePart(NamedTuple):
    """A message to send.

    `file` is uploaded first and its key becomes the content. A `spare` part may be dropped if Lark
    rejects only it. If Lark rejects the part, its `alternatives` are tried in this order.
    """

    kind: str
    content: str
    file: tuple[str, bytes] | None = None
    spare: bool = False
    alternatives: tuple["MessagePart", ...] = ()


Rendering = tuple[str, tuple[MessagePart, ...]]
"""The name of a format and the messages of a content in that format."""


def render_answer(answer: str, phrases: ChatPhrases) -> Sequence[Rendering]:
    """Return the renderings of an answer, the best first; each is complete.

    Code is shown exactly. Everything else that would be active in Lark is shown as text: mentions,
    images, and tags such as `<font>` and `<button>`. A link whose text names another host, or
    nothing, shows its host.
    """
    if byte_length(answer) > MAX_PAGES * MAX_RICH_BYTES:
        return _file_renderings(answer, phrases)
    blocks = parse_markdown(answer)
    first, *others = _page_forms(blocks)
    if byte_length(as_json(first.content)) <= MAX_RICH_BYTES:
        renderings = [("card", (first,)), *((_form_name(part), (part,)) for part in others)]
        plain = text_parts(as_plain_text(blocks), MAX_TEXT_BYTES)
        return (*renderings, ("text", plain), ("only-file", (_file_part(answer, phrases),)))
    blocks = parse_markdown(break_long_lines(answer))
    pages = split_pages(blocks, MAX_RICH_BYTES - _CARD_OVERHEAD, _card_bytes)
    if pages is None or len(pages) > MAX_PAGES:
        return _file_renderings(answer, phrases)
    return (
        ("cards", tuple(_page_part(page) for page in pages)),
        *_file_renderings(answer, phrases),
    )


def _page_forms(blocks: Sequence[AnswerBlock]) -> list[MessagePart]:
    """Return the rich forms of a page, the best first: cards with and without tables, a post."""
    summary = as_summary(blocks, _SUMMARY_CHARS)
    texts = dict.fromkeys((as_card_markdown(blocks, MAX_TABLES), as_card_markdown(blocks, 0)))
    cards = [MessagePart("interactive", as_json(markdown_card(text, summary))) for text in texts]
    return [*cards, post_part(_post_rows(blocks))]


def _form_name(part: MessagePart) -> str:
    return "plain-card" if part.kind == "interactive" else "post"


def _page_part(blocks: Sequence[AnswerBlock]) -> MessagePart:
    """Return a page of an answer, which has forms of its own: pages before it were sent."""
    first, *others = _page_forms(blocks)
    plain = text_parts(as_plain_text(blocks), MAX_TEXT_BYTES)
    return first._replace(alternatives=(*others, *plain))


def _card_bytes(block: AnswerBlock) -> int:
    return byte_length(as_json(as_json(block.card))) + _BLOCK_OVERHEAD


def mention_people(renderings: Sequence[Rendering], user_ids: Sequence[str]) -> Sequence[Rendering]:
    """Return the renderings with mentions at the beginning of their first message."""
    if not user_ids:
        return renderings
    return [
        (name, parts if parts[0].file else (_mention(parts[0], user_ids), *parts[1:]))
        for name, parts in renderings
    ]


def _mention(part: MessagePart, user_ids: Sequence[str]) -> MessagePart:
    content = msgspec.json.decode(part.content)
    match part.kind:
        case "interactive":
            tags = " ".join(f"<at id={user_id}></at>" for user_id in user_ids)
            content["body"]["elements"].insert(0, {"tag": "markdown", "content": tags})
        case "post":
            row = [{"tag": "at", "user_id": user_id} for user_id in user_ids]
            content["zh_cn"]["content"].insert(0, row)
        case _:
            tags = " ".join(f'<at user_id="{user_id}"></at>' for user_id in user_ids)
            content["text"] = f"{tags}\n{content['text']}"
    simpler = tuple(_mention(each, user_ids) for each in part.alternatives)
    return part._replace(content=as_json(content), alternatives=simpler)


def send_uuid(key: str, form: str, number: int) -> str:
    """Return the `uuid` under which Lark sends a message only once."""
    return hashlib.sha256(f"{key}\n{form}\n{number}".encode()).hexdigest()[:40]


def markdown_card(text: str, summary: str) -> dict[str, Any]:
    """Return a card with Markdown."""
    return card_json([{"tag": "markdown", "content": text}], summary)


def card_json(elements: Sequence[dict[str, Any]], summary: str) -> dict[str, Any]:
    """Return a card that can be patched; the chat list and notifications show its summary."""
    return {
        "schema": "2.0",
        "config": {
            "update_multi": True,
            "width_mode": "fill",
            "summary": {"content": escape_active(summary)},
        },
        "body": {"elements": list(elements)},
    }


def text_parts(text: str, max_bytes: int) -> tuple[MessagePart, ...]:
    """Return text messages of at max_bytes `max_bytes` each."""
    return tuple(
        MessagePart("text", as_json({"text": piece})) for piece in split_bytes(text, max_bytes)
    )


def post_part(rows: Sequence[Sequence[PostElement]]) -> MessagePart:
    """Return a rich text message of these paragraphs."""
    return MessagePart("post", as_json({"zh_cn": {"title": "", "content": rows}}))


def _post_rows(blocks: Sequence[AnswerBlock]) -> list[list[PostElement]]:
    """Return an answer as paragraphs; tables are code, since rich texts have none."""
    return [
        [
            {"tag": "md", "text": block.text}
            if block.kind == "text"
            else {"tag": "code_block", "text": block.text}
        ]
        for block in blocks
        if block.text.strip()
    ]


def _file_part(answer: str, phrases: ChatPhrases) -> MessagePart:
    """Return an answer as a file."""
    return MessagePart("file", "", (phrases("file_name"), answer.encode("utf-8", "replace")))


def _file_renderings(answer: str, phrases: ChatPhrases) -> Sequence[Rendering]:
    """Return the renderings of a long answer: a file after its beginning, and texts."""
    texts = (truncate_bytes(answer, _BEGINNING), phrases("long_answer"))
    head, *others = _page_forms([block for text in texts for block in parse_markdown(text)])
    file = _file_part(answer, phrases)
    plain = text_parts(as_plain_text(parse_markdown(answer)), MAX_TEXT_BYTES)
    return (("file", (head._replace(alternatives=tuple(others)), file)), ("text", plain))


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
    "awaiting_tasks": "blue",
    "waiting": "orange",
    "done": "green",
    "failed": "red",
    "cancelled": "grey",
}


def progress_card(content: RunContent) -> str:
    """Return the card as JSON. Thoughts are folded, and shortened to what Lark accepts."""
    text = content.thoughts.text
    card = _progress_card(content, text)
    while text and byte_length(as_json(card)) > MAX_RICH_BYTES:
        text = text[len(text) // 2 + 1 :]
        card = _progress_card(content, f"…{text}" if text else "")
    return card


def _progress_card(content: RunContent, thoughts: str) -> str:
    body = "\n".join(content.lines) or content.phrases("progress_thinking")
    title = {"tag": "plain_text", "content": content.title}
    header = {"title": title, "template": _COLORS[content.phase]}
    elements = [plain_text(body)]
    if thoughts:
        took = content.phrases.duration(max(content.thoughts.seconds, 1))
        elements.append(folded_text(content.phrases.runs("thought", time=took), thoughts))
    if content.run_id:
        elements.append(stop_button(content.run_id, content.phrases("progress_stop")))
    if content.footer:
        elements.append(plain_text(content.footer, soft=True))
    return as_json(card_json(elements, content.title) | {"header": header})


def progress_text(content: RunContent) -> str:
    """Return the text."""
    return escape_active("\n".join([f"{PROGRESS_MARK} {content.title}", *content.lines]))


def file_type(name: str) -> str:
    """Return Lark's type of a file, which selects its icon and preview.

    Audio and video are `stream`: those with a type of their own cannot be sent as files.
    """
    return _FILE_TYPES.get(PurePath(name).suffix.lower(), "stream")


def render_file(content: FileContent) -> list[Rendering]:
    """Return the forms of a file that Lark may accept, the best first; words are always one."""
    forms: list[Rendering] = []
    file, size = (content.name, content.content), len(content.content)
    if content.media_type in _PICTURE_TYPES and 0 < size <= MAX_PICTURE_BYTES:
        forms.append(("picture", (MessagePart("image", "", file),)))
    if 0 < size <= MAX_FILE_BYTES:
        forms.append(("file", (MessagePart("file", "", file),)))
    return [*forms, ("text", text_parts(content.words, MAX_TEXT_BYTES))]

"""Formats of outgoing messages: card, rich text, text, file and progress. Pure."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec

from internal.channels.chat.transport import AlbumContent, FileContent, RunContent, RunPhase
from internal.channels.lark.answer_pages import break_long_lines, split_pages
from internal.channels.lark.api import as_json
from internal.channels.lark.lark_markdown import (
    NO_PICTURES,
    AnswerBlock,
    Pictures,
    as_card_markdown,
    as_plain_text,
    as_summary,
    escape_active,
    escape_links,
    hide_pictures,
    parse_markdown,
)
from internal.channels.lark.question_form import (
    Element,
    button_row,
    folded_text,
    plain_text,
    stop_button,
)
from internal.i18n.chat import ChatPhrases

MAX_RICH_BYTES, MAX_TEXT_BYTES = 28 * 1024, 140 * 1024
"""Bytes of a card or post, and of a text; Lark accepts 30 KB and 150 KB."""
MAX_TABLES = 3
"""Tables in a card. Earlier reports say that Lark accepts five, a later measurement three."""
WITH_MENTIONS = "-with-mentions"
"""The end of the name of a form that notifies people."""
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

    `file` is uploaded first and its key becomes the content; the keys of `album` become pictures of
    a rich text. A `spare` part may be dropped if Lark rejects only it. If Lark rejects the part,
    one of its `alternatives` is tried, which get simpler; `form` is its name among them.

    `mentions` are the people whom it notifies, `pictures` the image keys that its text shows, and
    `tables` the number of tables.
    """

    kind: str
    content: str
    file: tuple[str, bytes] | None = None
    spare: bool = False
    alternatives: tuple["MessagePart", ...] = ()
    form: str = ""
    mentions: frozenset[str] = frozenset()
    pictures: frozenset[str] = frozenset()
    tables: int = 0
    album: tuple[tuple[str, bytes], ...] = ()


Rendering = tuple[str, tuple[MessagePart, ...]]
"""The name of a format and the messages of a content in that format."""


class AnswerExtras(NamedTuple):
    """The parts of an answer in addition to its text.

    `pictures` are the image keys of files of the run by the targets in the text, "" for one that
    Lark does not accept. `buttons` are elements below the text; forms without cards have none.
    """

    pictures: Pictures = NO_PICTURES
    mentions: tuple[str, ...] = ()
    buttons: tuple[Element, ...] = ()


NO_EXTRAS = AnswerExtras()


def render_answer(
    answer: str, phrases: ChatPhrases, extras: AnswerExtras = NO_EXTRAS
) -> Sequence[Rendering]:
    """Return the renderings of an answer, the best first; each is complete.

    Code is shown exactly. Everything else that would be active in Lark is shown as text: mentions,
    images other than `extras.pictures`, and tags such as `<font>` and `<button>`. A link whose text
    names another host, or nothing, shows its host.
    """
    return _mention_people(_render_text(answer, phrases, extras), extras.mentions)


def _render_text(answer: str, phrases: ChatPhrases, extras: AnswerExtras) -> Sequence[Rendering]:
    if byte_length(answer) > MAX_PAGES * MAX_RICH_BYTES:
        return _file_renderings(answer, phrases, extras)
    blocks = parse_markdown(answer, extras.pictures)
    has_many_tables = sum(block.is_shown_table for block in blocks) > MAX_TABLES
    forms = _page_forms(blocks, extras)
    is_one_page = byte_length(as_json(forms[0][0].content)) <= MAX_RICH_BYTES
    if is_one_page and not has_many_tables:
        renderings = [(parts[0].form, (_with_alternatives(parts),)) for parts in forms]
        plain = text_parts(as_plain_text(blocks), MAX_TEXT_BYTES)
        return (*renderings, ("text", plain), ("only-file", (_file_part(answer, phrases),)))
    blocks = parse_markdown(break_long_lines(answer), extras.pictures)
    pages = _split_cards(blocks)
    if pages is None:
        return _file_renderings(answer, phrases, extras)
    *others, last = pages
    text_only = extras._replace(buttons=())
    parts = (*(_page_part(page, text_only) for page in others), _page_part(last, extras))
    return ("cards", parts), *_file_renderings(answer, phrases, extras)


def _split_cards(blocks: Sequence[AnswerBlock]) -> list[list[AnswerBlock]] | None:
    """Return the blocks of each card; None if there are too many.

    A card has at most `MAX_TABLES` tables. If that would take more than `MAX_PAGES` cards, the last
    ones have further tables, which become code.
    """
    max_bytes = MAX_RICH_BYTES - _CARD_OVERHEAD
    pages = split_pages(blocks, max_bytes, _card_bytes, max_tables=MAX_TABLES)
    if pages is None or len(pages) <= MAX_PAGES:
        return pages
    joined = [block for page in pages[MAX_PAGES - 1 :] for block in page]
    if sum(map(_card_bytes, joined)) <= max_bytes:
        return [*pages[: MAX_PAGES - 1], joined]
    pages = split_pages(blocks, max_bytes, _card_bytes)
    return pages if pages is not None and len(pages) <= MAX_PAGES else None


def _page_forms(blocks: Sequence[AnswerBlock], extras: AnswerExtras) -> list[list[MessagePart]]:
    """Return the rich forms of a page, the best first: cards with and without tables, a post.

    A card with pictures comes with the one that has their words instead.
    """
    keys = [key for key in dict.fromkeys(extras.pictures.values()) if key]
    worded = [block._replace(card=hide_pictures(block.card, keys)) for block in blocks]
    summary = as_summary(worded, _SUMMARY_CHARS)
    shown = sum(block.is_shown_table for block in blocks)

    def card(form: str, blocks: Sequence[AnswerBlock], max_tables: int) -> MessagePart:
        text = as_card_markdown(blocks, max_tables)
        content = as_json(markdown_card(text, summary, extras.buttons))
        pictures = frozenset(key for key in keys if f"]({key})" in text)
        tables = min(shown, max_tables)
        return MessagePart("interactive", content, form=form, pictures=pictures, tables=tables)

    cards = [card("card", blocks, MAX_TABLES)]
    if cards[0].pictures:
        cards.append(card("card-without-pictures", worded, MAX_TABLES))
    forms = [cards]
    if shown:
        forms.append([card("plain-card", worded, 0)])
    return [*forms, [post_part(_post_rows(blocks))._replace(form="post")]]


def _with_alternatives(parts: Sequence[MessagePart]) -> MessagePart:
    return parts[0]._replace(alternatives=tuple(parts[1:]))


def _page_part(blocks: Sequence[AnswerBlock], extras: AnswerExtras) -> MessagePart:
    """Return a page of an answer, which has forms of its own: pages before it were sent."""
    rich = [part for form in _page_forms(blocks, extras) for part in form]
    plain = text_parts(as_plain_text(blocks), MAX_TEXT_BYTES)
    return _with_alternatives([*rich, *plain])


def _card_bytes(block: AnswerBlock) -> int:
    return byte_length(as_json(as_json(block.card))) + _BLOCK_OVERHEAD


def _mention_people(
    renderings: Sequence[Rendering], user_ids: Sequence[str]
) -> Sequence[Rendering]:
    """Return the renderings with mentions at the beginning of their first message.

    Each form of that message is followed by the same form without mentions.
    """
    if not user_ids:
        return renderings
    return [
        (name, parts if parts[0].file else (_mention(parts[0], user_ids), *parts[1:]))
        for name, parts in renderings
    ]


def _mention(part: MessagePart, user_ids: Sequence[str]) -> MessagePart:
    forms = [part._replace(alternatives=()), *part.alternatives]
    return _with_alternatives(
        [each for form in forms for each in (_mentioning(form, user_ids), form)]
    )


def _mentioning(part: MessagePart, user_ids: Sequence[str]) -> MessagePart:
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
    form = f"{part.form}{WITH_MENTIONS}"
    return part._replace(content=as_json(content), mentions=frozenset(user_ids), form=form)


def send_uuid(key: str, form: str, number: int) -> str:
    """Return the `uuid` under which Lark sends a message only once."""
    return hashlib.sha256(f"{key}\n{form}\n{number}".encode()).hexdigest()[:40]


def markdown_card(text: str, summary: str, buttons: Sequence[Element] = ()) -> dict[str, Any]:
    """Return a card with Markdown, and with buttons below it."""
    row = [button_row(buttons)] if buttons else []
    return card_json([{"tag": "markdown", "content": text}, *row], summary)


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
        MessagePart("text", as_json({"text": piece}), form="text")
        for piece in split_bytes(text, max_bytes)
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


def _file_renderings(
    answer: str, phrases: ChatPhrases, extras: AnswerExtras
) -> Sequence[Rendering]:
    """Return the renderings of a long answer: a file after its beginning, and texts."""
    texts = (truncate_bytes(answer, _BEGINNING), phrases("long_answer"))
    blocks = [block for text in texts for block in parse_markdown(text, extras.pictures)]
    head = [part for form in _page_forms(blocks, extras) for part in form]
    file = _file_part(answer, phrases)
    plain = text_parts(as_plain_text(parse_markdown(answer)), MAX_TEXT_BYTES)
    return ("file", (_with_alternatives(head), file)), ("text", plain)


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
    "incomplete": "orange",
    "failed": "red",
    "cancelled": "grey",
}


def progress_card(content: RunContent) -> str:
    """Return the card as JSON. Thoughts are folded, and shortened to Lark's limits."""
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

    Audio and video are `stream`, since Lark does not accept their own types as files.
    """
    return _FILE_TYPES.get(PurePath(name).suffix.lower(), "stream")


def render_file(content: FileContent) -> list[Rendering]:
    """Return the forms of a file that Lark may accept, the best first; words are always one.

    A caption is in the message of a picture, and in front of another file.
    """
    forms: list[Rendering] = []
    file, size = (content.name, content.content), len(content.content)
    if is_picture(content):
        picture = MessagePart("image", "", file)
        if content.caption:
            picture = _album_part((content,), content.caption)
        forms.append(("picture", (picture,)))
    if 0 < size <= MAX_FILE_BYTES:
        caption = text_parts(escape_active(escape_links(content.caption)), MAX_TEXT_BYTES)
        forms.append(("file", (*caption, MessagePart("file", "", file))))
    return [*forms, ("text", text_parts(content.words, MAX_TEXT_BYTES))]


def render_album(content: AlbumContent) -> list[Rendering]:
    """Return the forms of several pictures, the best first: one rich text, files, words."""
    forms: list[Rendering] = []
    if all(map(is_picture, content.pictures)):
        forms.append(("album", (_album_part(content.pictures, content.caption),)))
    if all(0 < len(each.content) <= MAX_FILE_BYTES for each in content.pictures):
        caption = text_parts(escape_active(escape_links(content.caption)), MAX_TEXT_BYTES)
        files = (MessagePart("file", "", (each.name, each.content)) for each in content.pictures)
        forms.append(("files", (*caption, *files)))
    return [*forms, ("text", text_parts(content.words, MAX_TEXT_BYTES))]


def is_picture(file: FileContent) -> bool:
    """Return True if Lark may accept a file as a picture."""
    is_small = 0 < len(file.content) <= MAX_PICTURE_BYTES
    return is_small and file.media_type in _PICTURE_TYPES


def _album_part(pictures: Sequence[FileContent], caption: str) -> MessagePart:
    """Return a rich text with a caption, to which its pictures are added when they have keys."""
    rows = [[{"tag": "text", "text": caption}]] if caption else []
    return post_part(rows)._replace(album=tuple((each.name, each.content) for each in pictures))


def add_album(part: MessagePart, keys: Sequence[str]) -> MessagePart:
    """Return an album with the uploaded pictures below its caption, one in a line."""
    content = msgspec.json.decode(part.content)
    content["zh_cn"]["content"] += [[{"tag": "img", "image_key": key}] for key in keys]
    return part._replace(content=as_json(content), album=())

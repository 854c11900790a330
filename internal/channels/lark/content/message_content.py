"""The content of a message: its text as Markdown, and its pictures and files."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from internal.channels.lark.content.card_text import card_text
from internal.channels.lark.content.files import FileKind, LarkFile
from internal.channels.lark.content.item_text import item_text

_KEY = re.compile(r"@_user_\d+|@_all")
_BLANKS = frozenset(" \t\xa0")
_PARAGRAPHS = re.compile(r"</p>\s*<p>")
_PARAGRAPH = re.compile(r"</?p>")
_MAX_KEY_LENGTH = 256
PARTIAL_KINDS = frozenset({"merge_forward", "interactive", "share_chat", "share_user"})
"""Kinds whose full content is only available from Lark's API."""
CARRIED_KINDS = frozenset({"merge_forward", "interactive"})
"""Kinds that carry words of others: forwarded messages and cards."""
_FAILED_CARD = "\u8bf7\u5347\u7ea7\u81f3\u6700\u65b0\u7248\u672c\u5ba2\u6237\u7aef"
"""Lark's text for a card that it cannot flatten: "upgrade to the newest version of the client"."""


class Mention(NamedTuple):
    """A mentioned person or bot; `key` is its placeholder in the text."""

    key: str
    open_id: str
    name: str


class MessageContent(NamedTuple):
    """The text of a message and its files; in a rich text `[NAME]` stands where a file is."""

    text: str
    files: tuple[LarkFile, ...] = ()


def read_content(
    kind: str, content: str, mentions: Sequence[Mention], *, bot: str = "", prefix: str = ""
) -> MessageContent | None:
    """Return the content of a message, with names for mentions except mentions of `bot`.

    `prefix` begins the names of files that have no name at Lark. Returns None if the kind is
    unknown, and empty content if it is malformed or only available from Lark's API.
    """
    decoded = decode_object(content)
    if kind in CARRIED_KINDS:
        return MessageContent(_readable_card(decoded) if kind == "interactive" else "")
    if (read := _KINDS.get(kind)) is None:
        text = item_text(kind, decoded)
        return None if text is None else MessageContent(text)
    names = {
        mention.key: None if mention.open_id == bot else f"@{' '.join(mention.name.split())}"
        for mention in mentions
    }
    reader = _Reader(names, prefix)
    text = without_removed(read(reader, decoded))
    return MessageContent(text if text.strip() else "", tuple(reader.files))


def decode_object(content: str) -> dict[str, Any]:
    """Return a JSON object, an empty one for anything else."""
    try:
        decoded = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return decoded if isinstance(decoded, dict) else {}


def without_paragraph_tags(text: str) -> str:
    """Return the text of an edited message without the `<p>` that Lark's editor puts around it."""
    if not (text.startswith("<p>") and text.endswith("</p>")):
        return text
    return _PARAGRAPH.sub("", _PARAGRAPHS.sub("\n", text))


def without_removed(pieces: Iterable[str | None]) -> str:
    """Return a text without the mentions that are None, and without one blank beside each.

    That is the blank behind a mention, else the one before it; of a line with nothing else its end.
    Everything else stays as it was written.
    """
    text, is_removed = "", False
    for piece in pieces:
        if piece is None:
            is_removed = True
            continue
        if is_removed and piece:
            text, behind = _close(text, piece)
            text, is_removed = text + behind, False
        else:
            text += piece
    return _close(text, "")[0] if is_removed else text


def _close(before: str, behind: str) -> tuple[str, str]:
    """Return the text before and after a removed mention without the blank beside it."""
    line = before.rpartition("\n")[2]
    if behind[:1] in _BLANKS:
        return before, behind[1:]
    if not line and behind.startswith("\n"):
        return before, behind[1:]
    if not line and not behind:
        return before.removesuffix("\n"), behind
    is_indented = not line.strip()
    return (before[:-1] if line[-1:] in _BLANKS and not is_indented else before), behind


def _readable_card(card: Mapping[str, Any]) -> str:
    text = card_text(card)
    return "" if _FAILED_CARD in text else text


Pieces = Iterable[str | None]
"""The pieces of a text; None stands for a mention that is removed."""


class _Reader:
    """Reads the content of one message and collects its files."""

    def __init__(self, names: Mapping[str, str | None], prefix: str) -> None:
        self._names, self._prefix = names, prefix
        self.files: list[LarkFile] = []

    def text(self, content: Mapping[str, Any]) -> Pieces:
        return self._with_names(_field(content, "text"))

    def post(self, content: Mapping[str, Any]) -> Pieces:
        """Yield a rich text as Markdown."""
        body = _post_body(content)
        title = _field(body, "title")
        start = f"# {title}\n\n" if title.strip() else ""
        for row in _rows(body):
            yield start
            for part in row:
                yield from self._part(part)
            start = "\n"

    def image(self, content: Mapping[str, Any]) -> Pieces:
        self._add("image", content, f"{self._prefix}picture")
        return ()

    def file(self, content: Mapping[str, Any]) -> Pieces:
        self._add("file", content, _field(content, "file_name") or f"{self._prefix}file")
        return ()

    def audio(self, content: Mapping[str, Any]) -> Pieces:
        """Take a voice message: Opus in Ogg, without a name."""
        self._add("file", content, f"{self._prefix}voice-message.ogg", "audio/ogg")
        return ()

    def _add(
        self, kind: FileKind, content: Mapping[str, Any], name: str, media_type: str = ""
    ) -> str:
        """Add a file and return its placeholder in the text."""
        key = _field(content, f"{kind}_key")
        if 0 < len(key) <= _MAX_KEY_LENGTH:
            self.files.append(LarkFile(key, kind, name, media_type))
        return f"[{name}]"

    def _part(self, part: Mapping[str, Any]) -> Pieces:
        """Yield a part of a rich text."""
        match _field(part, "tag"):
            case "at":
                key = _field(part, "user_id")
                other = "all" if key in {"all", "@_all"} else _field(part, "user_name")
                yield self._names.get(key, f"@{other}")
            case "img":
                number = 1 + sum(file.kind == "image" for file in self.files)
                yield self._add("image", part, f"{self._prefix}picture-{number}")
            case "media":
                yield self._add("file", part, _field(part, "file_name") or f"{self._prefix}video")
            case tag if (format_part := _FORMATS.get(tag)) is not None:
                yield format_part(part)
            case _:
                for piece in self._with_names(_field(part, "text")):
                    yield None if piece is None else _apply_styles(piece, part.get("style"))

    def _with_names(self, text: str) -> Pieces:
        """Yield a text with names for mention keys, in one pass: a name may look like a key."""
        end = 0
        for key in _KEY.finditer(text):
            yield text[end : key.start()]
            yield self._names.get(key[0], "@all" if key[0] == "@_all" else key[0])
            end = key.end()
        yield text[end:]


_KINDS: Mapping[str, Callable[[_Reader, Mapping[str, Any]], Pieces]] = {
    "text": _Reader.text,
    "post": _Reader.post,
    "image": _Reader.image,
    "file": _Reader.file,
    "audio": _Reader.audio,
    "media": _Reader.file,
    "video": _Reader.file,
}


_FORMATS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "a": lambda part: f"[{_field(part, 'text')}]({_field(part, 'href')})",
    "emotion": lambda part: f":{_field(part, 'emoji_type')}:",
    "code_block": lambda part: (
        f"\n```{_field(part, 'language').lower()}\n{_field(part, 'text')}\n```\n"
    ),
    "hr": lambda _: "\n---\n",
}
"""Markdown formats of the parts of a rich text without mentions and files, by tag."""


def _field(content: Mapping[str, Any], name: str) -> str:
    value = content.get(name)
    return value if isinstance(value, str) else ""


def _post_body(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a rich text without its language level, if it has one."""
    if "content" in content:
        return content
    return next((each for each in content.values() if isinstance(each, dict)), {})


def _rows(content: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    rows = content.get("content")
    return [
        [part for part in row if isinstance(part, dict)] if isinstance(row, list) else []
        for row in (rows if isinstance(rows, list) else ())
    ]


def _apply_styles(text: str, styles: object) -> str:
    marks = {"bold": "**", "italic": "*", "lineThrough": "~~"}
    for style in styles if isinstance(styles, list) else ():
        mark = marks.get(style, "") if isinstance(style, str) and text.strip() else ""
        text = f"{mark}{text}{mark}"
    return text

"""What an answer looks like: a card, a rich text, a text, or a summary with a file. Pure."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from internal.channels.lark.api_calls import as_json
from internal.i18n.chat import ChatPhrases

MOST_RICH, MOST_TEXT, MOST_TABLES = 28 * 1024, 140 * 1024, 5
"""Bytes of a card or post and of a text (Lark takes 30 KB and 150 KB), tables in a card."""
_SUMMARY = 4 * 1024
_TAG = re.compile(r"<(?=/?(?:at|person)\b)", re.IGNORECASE)
_IMAGE = re.compile(r"!\[([^\]\n]*)\]\(")
_TABLE = re.compile(
    r"^[ \t]*\|.*\n[ \t]*\|?[ \t:|-]*-[ \t:|-]*\n(?:^[ \t]*\|.*(?:\n|\Z))*", re.MULTILINE
)
_FENCED = re.compile(r"(^ {0,3}```.*?(?:^ {0,3}```[ \t]*$|\Z))", re.MULTILINE | re.DOTALL)


class Part(NamedTuple):
    """A message to be sent. `file` is what is uploaded for it, its content then waits for a key.

    A spare one may be left out when it alone is refused.
    """

    kind: str
    content: str
    file: tuple[str, bytes] | None = None
    spare: bool = False


Form = tuple[str, tuple[Part, ...]]
"""A name, and the messages that an answer consists of in that form."""


def forms(answer: str, words: ChatPhrases) -> Sequence[Form]:
    """Return the forms of an answer, the best first; each is whole by itself.

    A mention or a picture that a model writes is shown as it is written: nobody is called, nothing
    is fetched.
    """
    safe = inert(answer)
    plain: Form = ("text", texts(safe, MOST_TEXT))
    if size(as_json(as_json(markdown_card(safe)))) > MOST_RICH:
        return (("file", _file(safe, answer, words)), plain)
    found: list[Form] = []
    few = tables_as_code(safe, MOST_TABLES)
    none = tables_as_code(safe, 0)
    found.append(("card", (Part("interactive", as_json(markdown_card(few))),)))
    if none != few:
        found.append(("plain-card", (Part("interactive", as_json(markdown_card(none))),)))
    return (*found, ("post", (post(none),)), plain)


def uuid(key: str, form: str, number: int) -> str:
    """Return the name under which Lark sends a message once, whoever asks again."""
    return hashlib.sha256(f"{key}\n{form}\n{number}".encode()).hexdigest()[:40]


def markdown_card(text: str, title: str = "", colour: str = "") -> dict[str, Any]:
    """Return a card that may be patched."""
    card: dict[str, Any] = {
        "schema": "2.0",
        "config": {"update_multi": True, "width_mode": "fill"},
        "body": {"elements": [{"tag": "markdown", "content": text}]},
    }
    if title:
        card["header"] = {"title": {"tag": "plain_text", "content": title}, "template": colour}
    return card


def tables_as_code(text: str, most: int) -> str:
    """Return Markdown with its first tables; the others are shown as they are written."""
    count = 0

    def keep(found: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return found[0] if count <= most else f"```\n{found[0].rstrip()}\n```\n"

    parts = enumerate(_FENCED.split(text))  # every second one is fenced
    return "".join(part if number % 2 else _TABLE.sub(keep, part) for number, part in parts)


def inert(text: str) -> str:
    """Return Markdown in which mentions and pictures are nothing but text."""
    return _IMAGE.sub(r"[\1](", _TAG.sub("<\u200b", text))


def texts(text: str, most: int) -> tuple[Part, ...]:
    """Return text messages of at most so many bytes."""
    return tuple(Part("text", as_json({"text": piece})) for piece in chunks(text, most))


def post(text: str) -> Part:
    """Return a rich text of Markdown."""
    content = [[{"tag": "md", "text": text}]]
    return Part("post", as_json({"zh_cn": {"title": "", "content": content}}))


def _file(safe: str, answer: str, words: ChatPhrases) -> tuple[Part, ...]:
    said = words("long_answer", head=tables_as_code(head(safe, _SUMMARY), 0))
    content = answer.encode("utf-8", "replace")
    return post(said), Part("file", "", (words("file_name"), content))


_BREAKS = re.compile("[\n\u3002\uff01\uff1f.!?]\\s*")


def size(text: str) -> int:
    """Return the bytes in UTF-8."""
    return len(text.encode("utf-8", "replace"))


def head(text: str, most: int) -> str:
    """Return the beginning, at most so many bytes, ended at a sentence where there is one."""
    cut = text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")
    if cut == text:
        return text
    ends = [found.end() for found in _BREAKS.finditer(cut)]
    good = next((end for end in reversed(ends) if end > len(cut) // 2), len(cut))
    return cut[:good].rstrip()


def chunks(text: str, most: int) -> list[str]:
    """Return the text in pieces of at most so many bytes, none of them blank."""
    pieces: list[str] = []
    while text.strip():
        pieces.append(head(text, most))
        text = text[len(pieces[-1]) :].lstrip()
    return pieces

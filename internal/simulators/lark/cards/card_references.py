"""References in the texts of a card: pictures and people. Pure.

User reports show that Lark refuses a whole card with an unknown reference.
"""

import re
from collections.abc import Iterator

from internal.simulators.lark.cards.card_json import iter_parts
from internal.simulators.lark.model import Json

IMAGE_INVALID, PERSON_UNKNOWN = 200570, 100290
_CODE = re.compile(
    r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)|(?<!`)(`+)(?!`).+?(?<!`)\2(?!`)",
    re.MULTILINE | re.DOTALL,
)
_IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s]*)\)")
_AT = re.compile(r"<at\s+(?:id|user_id|open_id)=[\"']?([^\"'>\s]+)[\"']?[^>]*>")


def image_keys(card: Json) -> Iterator[str]:
    """Yield the keys of the pictures that a card shows."""
    for part in iter_parts(card):
        if part.value["tag"] == "img":
            yield str(part.value.get("img_key", ""))
    for text in _texts(card):
        yield from _IMAGE.findall(text)


def mentioned_ids(card: Json) -> Iterator[str]:
    """Yield the ids of the people that a card mentions, without `all`."""
    for text in _texts(card):
        yield from (each for each in _AT.findall(text) if each != "all")


def _texts(card: Json) -> Iterator[str]:
    """Yield the texts in which Lark interprets markup, without their code."""
    for part in iter_parts(card):
        text = part.value.get("content")
        if part.value["tag"] in {"markdown", "lark_md"} and isinstance(text, str):
            yield _CODE.sub("", text)

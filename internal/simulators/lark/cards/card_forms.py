"""The forms in which Lark returns the card of a message, as its users report them.

`user_card_content` is the card as it was sent, `raw_card_content` Lark's own format of it as text
in `json_card`. By default a card is flattened to a title and lists of parts; a card of JSON 2.0
becomes a request to upgrade the client.
"""

from collections.abc import Iterator
from typing import Any

from internal.simulators.lark.model import Json, encode

CARD_FORMS = frozenset({"", "user_card_content", "raw_card_content"})
UPGRADE = (
    "\u8bf7\u5347\u7ea7\u81f3\u6700\u65b0\u7248\u672c\u5ba2\u6237\u7aef"
    "\uff0c\u4ee5\u67e5\u770b\u5185\u5bb9"
)
"""Lark's sentence: upgrade to the newest version of the client to see the content."""


def card_in_form(card: Json, form: str) -> Json:
    """Return a card in one of `CARD_FORMS`."""
    if form == "user_card_content":
        return card
    if form == "raw_card_content":
        return {"json_card": encode(_raw(card)).decode(), "json_attachment": "{}"}
    title = card.get("header", {}).get("title", {}).get("content", "")
    if "elements" not in card:
        return {"title": title, "elements": [[{"tag": "text", "text": UPGRADE}]]}
    rows = [list(_parts(element)) for element in card["elements"]]
    return {"title": title, "elements": [row for row in rows if row]}


def _raw(node: Any) -> Any:
    """Return a node in Lark's own format: an element keeps its fields in `property`."""
    if isinstance(node, list):
        return [_raw(each) for each in node]
    if not isinstance(node, dict):
        return node
    fields = {name: _raw(value) for name, value in node.items() if name != "tag"}
    return {"tag": node["tag"], "property": fields} if "tag" in node else fields


def _parts(element: Any) -> Iterator[Json]:
    if not isinstance(element, dict):
        return
    text = element.get("text")
    content = text.get("content") if isinstance(text, dict) else element.get("content")
    if element.get("tag") == "img":
        yield {"tag": "img", "image_key": element.get("img_key", "")}
    elif isinstance(content, str):
        yield {"tag": "text", "text": content}
    for name in ("fields", "actions", "elements"):
        for each in element.get(name) or ():
            yield from _parts(each)

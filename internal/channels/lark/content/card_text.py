"""The text of cards, in the formats in which Lark returns them.

These are a card as it was sent (`user_card_content`, JSON 1.0 and 2.0), Lark's own format of it
(`raw_card_content`, a card in `json_card` whose nodes keep their fields in `property`), and the
flattened form of events: a title, and lists of parts with tags.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

MAX_DEPTH = 24
MAX_CHARACTERS = 20_000

_INLINE = frozenset({"text", "a", "at", "plain_text", "lark_md"})
_CHILDREN = ("header", "body", "title", "subtitle", "text", "fields", "label", "elements")
_LATER = ("columns", "actions", "extra", "rows", "options", "i18n_elements")


def card_text(card: Mapping[str, Any]) -> str:
    """Return the text of a card: one line per element, tables as rows; bounded."""
    inner = card.get("json_card")
    if isinstance(inner, str):
        try:
            decoded = msgspec.json.decode(inner)
        except (msgspec.DecodeError, RecursionError):
            return ""
        card = decoded if isinstance(decoded, dict) else {}
    lines: list[str] = []
    length = 0
    for line in _lines(card, 0):
        lines.append(line)
        length += len(line)
        if length > MAX_CHARACTERS:
            break
    return "\n".join(lines)[:MAX_CHARACTERS].strip()


def _lines(node: object, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        return
    if isinstance(node, str):
        if node.strip():
            yield node
    elif isinstance(node, list):
        yield from _lines_of_list(node, depth)
    elif isinstance(node, dict):
        fields = _fields(node)
        special = _SPECIAL.get(str(fields.get("tag", "")))
        yield from _children(fields, depth) if special is None else special(fields, depth)


def _lines_of_list(nodes: Sequence[object], depth: int) -> Iterator[str]:
    """Yield the lines of a list; the parts of a flattened paragraph are one line."""
    if nodes and all(isinstance(each, dict) and each.get("tag") in _INLINE for each in nodes):
        line = "".join(_inline(each, depth + 1) for each in _objects(nodes))
        yield from (line,) if line.strip() else ()
        return
    for each in nodes:
        yield from _lines(each, depth + 1)


def _inline(part: Mapping[str, Any], depth: int) -> str:
    text = part.get("text")
    is_plain = part.get("tag") == "text" and isinstance(text, str)
    return str(text) if is_plain else "".join(_lines(part, depth))


def _children(fields: Mapping[str, Any], depth: int) -> Iterator[str]:
    content = fields.get("content")
    if isinstance(content, str) and content.strip():
        yield content
    for name in (*_CHILDREN, *_LATER):
        if name in fields:
            yield from _lines(fields[name], depth + 1)


def _fields(node: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = node.get("property")
    return {**inner, "tag": node.get("tag", "")} if isinstance(inner, dict) else node


def _image(_: Mapping[str, Any], __: int) -> Iterator[str]:
    yield "[a picture of the card, not shown]"


def _rule(_: Mapping[str, Any], __: int) -> Iterator[str]:
    yield "---"


def _button(fields: Mapping[str, Any], depth: int) -> Iterator[str]:
    label = " ".join(_lines(fields.get("text"), depth + 1))
    if label:
        yield f"[button: {label}]"


def _field(fields: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Yield a form field: its label or hint, its value and its options."""
    label = " ".join(
        line for name in ("label", "placeholder") for line in _lines(fields.get(name), depth + 1)
    )
    value = fields.get("default_value") or fields.get("initial_option")
    options = [
        " ".join(_lines(each.get("text"), depth + 1)) for each in _objects(fields.get("options"))
    ]
    parts = [label or "field"]
    if isinstance(value, str):
        parts.append(f"= {value}")
    if options:
        parts.append(f"({' | '.join(options)})")
    yield f"[{' '.join(parts)}]"


def _link(fields: Mapping[str, Any], _: int) -> Iterator[str]:
    text, address = fields.get("text"), fields.get("href")
    yield f"[{text}]({address})" if isinstance(address, str) and address else str(text or "")


def _mention(fields: Mapping[str, Any], _: int) -> Iterator[str]:
    yield f"@{fields.get('user_name') or fields.get('user_id') or ''}"


def _table(fields: Mapping[str, Any], _: int) -> Iterator[str]:
    columns = _objects(fields.get("columns"))
    names = [str(each.get("name", "")) for each in columns]
    yield _row([str(each.get("display_name") or each.get("name", "")) for each in columns])
    for row in _objects(fields.get("rows")):
        yield _row([_cell(row.get(name)) for name in names])


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _row(cells: Sequence[str]) -> str:
    cleaned = (" ".join(cell.replace("|", "/").split()) for cell in cells)
    return f"| {' | '.join(cleaned)} |"


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return _cell(value.get("data", value.get("text", value.get("content", ""))))
    if isinstance(value, list):
        return ", ".join(_cell(each) for each in value)
    return "" if value is None else str(value)


_SPECIAL = {
    "img": _image,
    "img_combination": _image,
    "hr": _rule,
    "button": _button,
    "input": _field,
    "select_static": _field,
    "multi_select_static": _field,
    "select_person": _field,
    "date_picker": _field,
    "picker_time": _field,
    "picker_datetime": _field,
    "checker": _field,
    "table": _table,
    "a": _link,
    "at": _mention,
}

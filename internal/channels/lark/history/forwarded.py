"""The messages of a forwarded bundle as text.

Lark returns all messages of a bundle, and of the bundles inside of it, in one list. Each names the
bundle that it is in as its `upper_message_id`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from internal.channels.chat.prompts import speaker_name
from internal.channels.lark.api import as_datetime, read_milliseconds

MAX_CHILDREN, MAX_DEPTH = 50, 3
MAX_CHARACTERS = 50_000
FILES_NOT_SENT = "(Lark sends apps no files of forwarded messages; they are only named.)"
BUNDLE = "[forwarded messages]"

_INDENT, _CONTINUED = "    ", "  | "

Item = Mapping[str, Any]


class ForwardedMessages:
    """The tree of the messages in a bundle.

    `read` returns the text of a message that is no bundle, and whether it has files.
    """

    def __init__(
        self, bundle_id: str, items: Sequence[Item], read: Callable[[Item], tuple[str, bool]]
    ) -> None:
        self._bundle_id, self._read = bundle_id, read
        self._children: dict[str, list[Item]] = defaultdict(list)
        self._has_files = False
        for item in items:
            upper = str(item.get("upper_message_id") or "")
            if upper or item.get("message_id") != bundle_id:
                self._children[upper or bundle_id].append(item)
        for children in self._children.values():
            children.sort(key=_created)

    @property
    def people(self) -> list[str]:
        """The open_ids of the people who wrote the messages that are shown, each once."""
        return list(dict.fromkeys(self._people(self._bundle_id, 1)))

    def text(self, names: Mapping[str, str]) -> str:
        """Return a line `[time] name: text` for each message, with the names of its writers.

        Further lines of a text begin with a bar, and bundles inside are indented, so that no text
        can imitate the message of another person. Returns "" if there are no messages.
        """
        self._has_files = False
        lines: list[str] = []
        length = 0
        for line in self._lines(self._bundle_id, 1, names):
            length += len(line) + 1
            if length > MAX_CHARACTERS:
                lines.append("… further messages, not shown")
                break
            lines.append(line)
        if self._has_files:
            lines.append(FILES_NOT_SENT)
        return "\n".join(lines)

    def _people(self, bundle_id: str, depth: int) -> Iterator[str]:
        for item in self._children.get(bundle_id, ())[:MAX_CHILDREN]:
            sender = _sender(item)
            if sender.get("sender_type") != "app" and not sender.get("sender_name"):
                yield str(sender.get("id") or "")
            if item.get("msg_type") == "merge_forward" and depth < MAX_DEPTH:
                yield from self._people(str(item.get("message_id") or ""), depth + 1)

    def _lines(self, bundle_id: str, depth: int, names: Mapping[str, str]) -> Iterator[str]:
        children = self._children.get(bundle_id, ())
        for item in children[:MAX_CHILDREN]:
            yield from self._lines_of(item, depth, names)
        if len(children) > MAX_CHILDREN:
            yield f"… {len(children) - MAX_CHILDREN} more messages, not shown"

    def _lines_of(self, item: Item, depth: int, names: Mapping[str, str]) -> Iterator[str]:
        start = f"{_time(item)}{_author(item, names)}: "
        if item.get("msg_type") != "merge_forward":
            text, has_files = self._read(item)
            self._has_files = self._has_files or has_files
            first, *further = text.split("\n")
            yield f"{start}{first}" if first else start.rstrip()
            yield from (f"{_CONTINUED}{line}" for line in further)
            return
        yield f"{start}{BUNDLE}"
        if depth >= MAX_DEPTH:
            yield f"{_INDENT}(nested too deep, not shown)"
            return
        inner = self._lines(str(item.get("message_id") or ""), depth + 1, names)
        yield from _indented(inner)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"{_INDENT}{line}" for line in lines)


def _created(item: Item) -> int:
    return read_milliseconds(str(item.get("create_time") or "")) or 0


def _time(item: Item) -> str:
    at = as_datetime(_created(item) or None)
    return "" if at is None else f"[{at.astimezone():%F %H:%M}] "


def _sender(item: Item) -> Item:
    sender = item.get("sender")
    return sender if isinstance(sender, dict) else {}


def _author(item: Item, names: Mapping[str, str]) -> str:
    sender = _sender(item)
    sender_id, name = str(sender.get("id") or ""), str(sender.get("sender_name") or "")
    if sender.get("sender_type") == "app":
        return f"{speaker_name(name, 'bot')} (a bot)" if name else "(a bot)"
    name = name or names.get(sender_id, "")
    return speaker_name(name, sender_id) if name or sender_id else "(unknown)"

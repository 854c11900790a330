"""A shell command before and beside its parse: length, odd characters, here-documents."""

import re

from tree_sitter import Node

from internal.agent.domain.permissions.shell.words import from_parser, source_of
from internal.agent.domain.text import is_invisible

MAX_BYTES = 64 * 1024
MAX_MARKS = 4_000  # punctuation and gaps; beyond it the parser's error recovery takes seconds
_FOREIGN = re.compile(r"[^ -~\n\t]")
_MARK = re.compile(r"[^\w\s]|\s+")
_DELIMITER = re.compile(r"(\\?)(['\"]?)(\w+)\2")


def odd_character(text: str) -> str:
    """The first character that a person cannot see or that cuts words differently, or ""."""
    return next((each for each in _FOREIGN.findall(text) if is_invisible(each)), "")


def odd_text(text: str) -> str:
    """Why a command text cannot be judged before it is even parsed, or ""."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES or cut(text) != text:
        return "it is too long to be judged"
    if odd := odd_character(text):
        return f"it contains the invisible character {odd!a}"
    if "\\\n" in text:
        return "it continues a line with a backslash; write it on one line"
    return ""


def cut(text: str) -> str:
    """The beginning of the text that can be parsed in a bounded time; the text itself if all."""
    text = text[:MAX_BYTES]
    for count, mark in enumerate(_MARK.finditer(text)):
        if count == MAX_MARKS:
            return text[: mark.start()]
    return text


def heredoc_holds(raw: bytes, node: Node, start: Node) -> bool:
    """Whether the parser ends the document at the line where the shell ends it."""
    delimiter = _DELIMITER.fullmatch(source_of(start))
    ends = [child for child in node.children if child.type == "heredoc_end"]
    place = raw.find(b"\n", start.end_byte) + 1
    if not delimiter or len(ends) != 1 or b"<<" in raw[start.end_byte : place] or not place:
        return False
    tabs = b"\t" if source_of(node).startswith("<<-") else b""
    while place < len(raw):
        line, _, _ = raw[place:].partition(b"\n")
        text = line.lstrip(tabs) if tabs else line
        if from_parser(text) == delimiter[3]:
            return ends[0].start_byte == place + len(line) - len(text)
        place += len(line) + 1
    return False

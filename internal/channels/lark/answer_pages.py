"""Split a long answer into pages that each fit into one card. Pure.

Pages begin at paragraphs, tables and code blocks. A table that continues repeats its header, a code
block its fence; lines of code and rows of tables are never split.
"""

import re
import unicodedata
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from internal.channels.lark.lark_markdown import AnswerBlock, find_fixed_lines

MAX_LINE_BYTES = 4 * 1024
"""Longer lines of text are broken, so that a page can end inside of a long paragraph."""
_TABLE_HEAD = 2
_MIN_FILLED = 2 / 3
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_BOUNDARIES = (
    re.compile(r"(?<=[\u3002\uff01\uff1f\uff1b])|(?<=[.!?;]) "),
    re.compile(r"(?<=[\uff0c\u3001\uff1a])| "),
    re.compile(r"(?<=.)(?=.)"),
)
"""Places to break a line: after sentences, else between words, else between characters."""
_BEGINS_BLOCK = re.compile(r"[\s\-+*>#=|~`:<\[\]()_!\d]")
_FLAG_LETTERS = re.compile("[\U0001f1e6-\U0001f1ff]+$")
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")

Measure = Callable[[AnswerBlock], int]
"""The bytes that a block takes in a card."""


def split_pages(
    blocks: Sequence[AnswerBlock],
    max_bytes: int,
    measure: Measure,
    *,
    max_tables: int | None = None,
) -> list[list[AnswerBlock]] | None:
    """Return the blocks on pages of at most `max_bytes`; None if a line is longer than a page.

    A page has at most `max_tables` tables; None means no limit.
    """
    waiting = deque(unit for block in blocks for unit in _units(block))
    pages, page, size, tables = list[list[AnswerBlock]](), list[AnswerBlock](), 0, 0
    while waiting:
        unit = waiting.popleft()
        cost = measure(unit)
        if unit.is_shown_table and tables == max_tables:
            waiting.appendleft(unit)
        elif size + cost <= max_bytes:
            page.append(unit)
            size += cost
            tables += unit.is_shown_table
            continue
        elif cost > max_bytes or size < max_bytes * _MIN_FILLED:
            head, rest = _split(unit, max_bytes - size, measure)
            if head is None and not page:
                return None
            page += [head] if head is not None else []
            waiting.extendleft(each for each in (rest,) if each is not None)
        else:
            waiting.appendleft(unit)
        if len(page) > 1 and _HEADING.match(page[-1].text):
            waiting.appendleft(page.pop())  # a heading stays with what it is about
        pages.append(page)
        page, size, tables = [], 0, 0
    return [*pages, page] if page else pages


def break_long_lines(text: str) -> str:
    """Return the text with line feeds in its long lines, outside of code and tables."""
    lines = text.split("\n")
    if all(len(line.encode("utf-8", "replace")) <= MAX_LINE_BYTES for line in lines):
        return text
    fixed = find_fixed_lines(text)
    return "\n".join(
        line if number in fixed else _break_line(line) for number, line in enumerate(lines)
    )


def _units(block: AnswerBlock) -> Iterator[AnswerBlock]:
    """Yield the paragraphs of a text, with the blank lines after them; other blocks unchanged."""
    if block.kind != "text":
        yield block
        return
    lines, begin = block.text.split("\n"), 0
    for number in range(1, len(lines)):
        if not lines[number - 1].strip() and lines[number].strip():
            yield block.part(begin, number)
            begin = number
    yield block.part(begin, len(lines))


def _split(
    unit: AnswerBlock, available: int, measure: Measure
) -> tuple[AnswerBlock | None, AnswerBlock | None]:
    """Return as many lines of a block as fit, and the rest; the first is None if none fits."""
    lines = unit.text.count("\n") + 1
    first = _TABLE_HEAD if unit.kind == "table" else 0
    fitting, too_many = first, lines
    while fitting + 1 < too_many:
        middle = (fitting + too_many) // 2
        if measure(unit.part(0, middle)) <= available:
            fitting = middle
        else:
            too_many = middle
    if fitting == first:
        return None, unit
    rest = unit.part(fitting, lines, head=first)
    return unit.part(0, fitting), rest


def _break_line(line: str) -> str:
    """Return a line in pieces of about `MAX_LINE_BYTES`; a piece cannot begin another block."""
    pieces: list[str] = []
    while len(line.encode("utf-8", "replace")) > MAX_LINE_BYTES:
        end = len(line.encode("utf-8", "replace")[:MAX_LINE_BYTES].decode("utf-8", "ignore"))
        if not (place := _find_break(line, end)):
            break
        pieces.append(line[:place].rstrip(" "))
        line = line[place:].lstrip(" ")
    return "\n".join([*pieces, line])


def _find_break(line: str, end: int) -> int:
    """Return the last good place to break before `end`, or 0."""
    closed = line.count("`", 0, end) % 2 == 0 and "``" not in line[:end]
    for boundary in _BOUNDARIES:
        for found in reversed([*boundary.finditer(line, end // 2, end)]):
            place = found.end()
            code_is_closed = closed or line.count("`", 0, place) % 2 == 0
            if code_is_closed and not _is_joined(line, place):
                return place
    return 0


def _is_joined(line: str, place: int) -> bool:
    """Return True if a piece must not begin here: inside a character, or like another block."""
    before, after = line[place - 1 : place], line[place : place + 1]
    if not after or _BEGINS_BLOCK.match(after):
        return True
    flags = _FLAG_LETTERS.search(line[:place])  # two letters are a flag
    return (
        (flags is not None and len(flags[0]) % 2 == 1)
        or unicodedata.category(after).startswith("M")
        or before == "\u200d"
        or after in _JOINERS
        or "\U0001f3fb" <= after <= "\U0001f3ff"
    )

"""The output of commands: JSON, or text in columns of equal width. Standard library only."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from unicodedata import combining, east_asian_width

from internal.channels.cli.exit_codes import OK
from internal.channels.cli.output import Output, sanitize_terminal

MAX_CELL_COLUMNS = 60
MIN_SHORT_LENGTH, SHORT_LENGTH = 4, 6


class CommandOutput(NamedTuple):
    """Writes the result of a command to standard output, as JSON if asked to."""

    stream: Output
    as_json: bool = False

    def items(self, items: Sequence[Any]) -> int:
        """Write records: named tuples whose `cells` are the columns. Return the exit code.

        In text an id in the first column is shortened.
        """
        if self.as_json:
            return self.json([item._asdict() for item in items])
        rows = [item.cells for item in items]
        if items and items[0]._fields[0].endswith("_id"):
            short = short_ids([row[0] for row in rows])
            rows = [(short[row[0]], *row[1:]) for row in rows]
        return self.rows(rows)

    def rows(self, rows: Sequence[Sequence[str]]) -> int:
        """Write rows of cells in columns. Return the exit code."""
        for line in format_columns(rows):
            self.line(line)
        return OK

    def json(self, value: object) -> int:
        """Write a value as JSON. Return the exit code."""
        self.line(json.dumps(value, indent=2, ensure_ascii=False))
        return OK

    def line(self, text: str) -> None:
        """Write a line."""
        self.stream.write(f"{text}\n".encode("utf-8", "replace"))


def format_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns."""
    cut = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(count_columns, column)) for column in zip(*cut, strict=True)]
    return ["  ".join(map(_pad, row, widths)).rstrip() for row in cut]


def short_ids(known: Sequence[str]) -> dict[str, str]:
    """Return the shortest unique ending of each id, of 4 or more characters.

    The beginning of an id is the time of its creation, so its end distinguishes better.
    """
    bare = {name: bare_id(name) for name in known}
    short: dict[str, str] = {}
    for name, text in bare.items():
        length = MIN_SHORT_LENGTH
        stem, dash, number = text.partition("-")  # the id of a question ends with a number
        while (
            length < len(stem)
            and sum(one.endswith(f"{stem[-length:]}{dash}{number}") for one in bare.values()) > 1
        ):
            length += 1
        short[name] = f"{stem[-length:]}{dash}{number}"
    return short


def short_id(name: str) -> str:
    """Return the end of an id, long enough to be the only one with it."""
    stem, dash, number = bare_id(name).partition("-")
    return f"{stem[-SHORT_LENGTH:]}{dash}{number}"


def bare_id(name: str) -> str:
    """Return an id without its prefix, such as `session-`."""
    return name.partition("-")[2]


def one_line(text: str, columns: int = MAX_CELL_COLUMNS) -> str:
    """Return text on one line of at most `columns` columns, without control characters."""
    line = sanitize_terminal(" ".join(text.split()))
    if count_columns(line) <= columns:
        return line
    kept, width = "", 0
    for char in line:
        width += count_columns(char)
        if width >= columns:
            break
        kept += char
    return f"{kept}…"


def count_columns(text: str) -> int:
    """Return the number of terminal columns that a text occupies."""
    return sum(2 if east_asian_width(c) in "WF" else not combining(c) for c in text)


def _pad(cell: str, width: int) -> str:
    return cell + " " * (width - count_columns(cell))

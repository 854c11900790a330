"""Finds the row of an answer."""

from functools import lru_cache
from typing import NamedTuple

from internal.agent.domain.errors import Refusal
from internal.llm.refusals.answer import ErrorAnswer
from internal.llm.refusals.table import TableRow, load_tables

UNKNOWN = Refusal("unknown")


class FoundRow(NamedTuple):
    """A row that an answer fits: its table, its name, and the refusal that it describes."""

    table: str
    name: str
    row: TableRow
    refusal: Refusal


def classify(answer: ErrorAnswer, server: str = "") -> Refusal:
    """Return the refusal in an answer, by the table of that `server` first.

    The fields that a program reads count more than words, because words may come from a person: a
    row with a code is asked before a row without, and a status by itself last.
    """
    found = find_row(answer, server)
    return UNKNOWN if found is None else found.refusal


def find_row(answer: ErrorAnswer, server: str = "") -> FoundRow | None:
    """Return the first row that an answer fits, or None."""
    codes = {code.casefold() for code in answer.codes}
    for table, name, row in _rows(server.casefold()):
        if answer.status is not None and answer.status not in row.status:
            continue
        if row.code and not codes & row.codes:
            continue
        if row.level == _BY_STATUS and answer.status is None:
            continue
        refusal = _refusal(row, answer.words)
        if refusal is not None:
            if refusal.kind == "content_filter":
                refusal = refusal._replace(name=answer.filtered)
            return FoundRow(table, name, row, refusal)
    return None


_BY_STATUS = 3


def _refusal(row: TableRow, words: str) -> Refusal | None:
    if not row.text:
        return Refusal(row.kind, change=row.change)
    found = row.pattern.search(words)
    if found is None:
        return None
    said = {key.strip("_"): value for key, value in found.groupdict().items() if value}
    return Refusal(
        row.kind,
        said.get("name", ""),
        _number(said.get("number")),
        _number(said.get("limit")),
        row.change,
    )


def _number(digits: str | None) -> int | None:
    return int(digits.replace(",", "").replace("_", "")[:18]) if digits else None


@lru_cache(16)
def _rows(server: str) -> tuple[tuple[str, str, TableRow], ...]:
    """Return the rows in the order in which they are asked."""
    rows = [
        (table, name, row) for table, rows in load_tables().items() for name, row in rows.items()
    ]
    return tuple(sorted(rows, key=lambda each: (each[2].level, each[0] != server)))

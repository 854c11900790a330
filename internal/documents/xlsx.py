"""Excel: the rows of each sheet as CSV."""

import csv
import datetime as dt
import io
import warnings
from collections.abc import Iterator
from functools import cached_property, partial
from itertools import zip_longest
from typing import Any, BinaryIO
from xml.etree.ElementTree import ParseError

import openpyxl
from defusedxml.common import DefusedXmlException

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.extraction import ExtractedDocument, clean
from internal.documents.package import (
    DAMAGE,
    PackageReader,
    local_attribute,
    open_package,
    relationship_id,
)

MAX_CELLS = 400_000
"""How many cells of a workbook are read, also those without a value."""
MAX_UNDECLARED_BYTES = 32 << 20
"""The largest sheet that does not say its size: openpyxl reads it to its end to find that."""
_PROBE_BYTES = 1 << 20
_FORMULAS = (b"<f>", b"<f ")


def read_xlsx(file: BinaryIO) -> ExtractedDocument:
    """Return the values of a workbook; a formula without a stored value is shown itself.

    Raises:
        DocumentUnreadable: it is encrypted or damaged.
    """
    workbook = _Workbook(file)
    sheets = workbook.values.worksheets
    return ExtractedDocument(len(sheets), workbook.rows(), "[The workbook is empty.]")


class _Workbook:
    """A workbook, loaded once with the stored values and, if needed, once with the formulas."""

    def __init__(self, file: BinaryIO) -> None:
        self._package = PackageReader(open_package(file, "Excel"), "Excel")
        self._load = partial(openpyxl.load_workbook, file, read_only=True, keep_links=False)
        main = self._package.main_part()
        targets = self._package.relationships(main)
        self._parts = {
            local_attribute(each, "name"): targets.get(relationship_id(each), ("", ""))[1]
            for each in self._package.tree(main).iterfind("{*}sheets/{*}sheet")
        }
        for part in self._parts.values():
            self._check_size(part)
        self.values = self._open(data_only=True)
        self._cells_left = MAX_CELLS

    def _check_size(self, part: str) -> None:
        if not self._package.has(part) or self._package.size(part) <= MAX_UNDECLARED_BYTES:
            return
        with self._package.open(part) as entry:
            if b"<dimension " not in entry.read(_PROBE_BYTES):
                raise DocumentUnreadable("The Excel file has a sheet that is too large to be read.")

    @cached_property
    def _formulas(self) -> Any:
        return self._open(data_only=False)

    def _open(self, *, data_only: bool) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._load(data_only=data_only)
        except (ParseError, *DAMAGE) as error:  # openpyxl may wrap it in a ValueError
            if isinstance(error.__cause__ or error, DefusedXmlException):
                raise _entities() from error
            raise DocumentUnreadable("The Excel file is damaged: it cannot be opened.") from error

    def rows(self) -> Iterator[str]:
        """Yield the heading and the rows of each sheet."""
        try:
            for number, sheet in enumerate(self.values.worksheets):
                yield from self._sheet(number, sheet)
                if self._cells_left < 0:
                    yield f"[The workbook has over {MAX_CELLS:,} cells: the rest is missing.]\n"
                    return
        except DefusedXmlException as error:
            raise _entities() from error
        except (ParseError, *DAMAGE) as error:
            raise DocumentUnreadable("The Excel file is damaged: a sheet ends early.") from error

    def _sheet(self, number: int, sheet: Any) -> Iterator[str]:
        hidden = "" if sheet.sheet_state == "visible" else " (hidden)"
        yield f'## Sheet "{clean(sheet.title)}"{hidden}\n\n'
        has_formulas = self._has_formulas(self._parts.get(sheet.title, ""))
        yield from self._rows(sheet, self._formulas.worksheets[number] if has_formulas else None)
        yield "\n"

    def _rows(self, sheet: Any, formulas: Any) -> Iterator[str]:
        """Yield the rows that have a value, as long as cells may be read."""
        line = io.StringIO()
        write = csv.writer(line, lineterminator="\n").writerow
        values = _cells_by_row(sheet)
        others = _cells_by_row(formulas) if formulas else iter(())
        for row, formula_row in zip_longest(values, others, fillvalue=()):
            self._cells_left -= max(len(row), len(formula_row), 1)
            if self._cells_left < 0:
                return
            shown = [
                _shown(formula if value is None else value)
                for value, formula in zip_longest(row, formula_row)
            ]
            while shown and not shown[-1]:
                shown.pop()
            if shown:
                write(shown)
                yield line.getvalue()
                line.seek(0)
                line.truncate()

    def _has_formulas(self, part: str) -> bool:
        if not self._package.has(part):
            return False
        before = b""
        with self._package.open(part) as entry:
            while chunk := entry.read(_PROBE_BYTES):
                if any(mark in before + chunk for mark in _FORMULAS):
                    return True
                before = chunk[-4:]
        return False


def _entities() -> DocumentUnreadable:
    return DocumentUnreadable("The Excel file contains XML entities, which are not read.")


def _cells_by_row(sheet: Any) -> Iterator[tuple[Any, ...]]:
    sheet.reset_dimensions()  # what a file declares may be the whole grid
    rows: Iterator[tuple[Any, ...]] = sheet.iter_rows(values_only=True)
    return rows


def _shown(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "TRUE" if value else "FALSE"
        case float() if value.is_integer():
            return f"{value:.0f}"
        case dt.datetime():
            return value.isoformat(" ", "seconds").removesuffix(" 00:00:00")
        case dt.date() | dt.time():
            return value.isoformat()
        case _:
            return clean(str(getattr(value, "text", value)))  # the text of an array formula

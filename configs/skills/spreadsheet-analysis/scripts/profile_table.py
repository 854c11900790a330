"""Profile the tables of a CSV or XLSX file, with the standard library only.

For every column: type, missing, distinct, minimum, maximum, mean, most frequent value; and notes on
what is unusual. XLSX files are unpacked within limits, and XML with a document type is refused.
"""

from __future__ import annotations

import argparse
import codecs
import csv
import json
import posixpath
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

MAX_BYTES = 100_000_000
MAX_UNPACKED_BYTES = 200_000_000
MAX_ENTRIES = 5_000
MAX_SHEETS = 20
MAX_ROWS = 1_000_000
MAX_COLUMNS = 1_000
MAX_STRINGS = 2_000_000
MAX_CELL_CHARS = 100_000
MAX_DISTINCT = 10_000
MAX_DISTINCT_IN_ALL = 300_000
MAX_SHOWN_CHARS = 40

_CHUNK_BYTES = 65_536
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError)
_MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "-"})
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,14})")
_NUMBER = re.compile(
    r"[+-]?((0|[1-9]\d{0,14}|[1-9]\d{0,2}(,\d{3}){1,4})(\.\d{1,30})?|\.\d{1,30})([eE][+-]?\d{1,3})?"
)
_TIME = r"\d{1,2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?"
_DATE = re.compile(rf"(\d{{4}})[-/](\d{{1,2}})[-/](\d{{1,2}})([T ]{_TIME})?")
_LEADING_ZERO = re.compile(r"0\d+")
_REFERENCE = re.compile(r"([A-Z]{1,3})\d{1,7}")
_DATE_FORMATS = frozenset({*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)})
_FORMAT_TEXT = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.|_.|\*.')
_UNPRINTABLE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+"
)


class Unreadable(Exception):
    """A file cannot be profiled; the text says why."""


class Cell(NamedTuple):
    """A value and what it is: integer, number, date, time, boolean, error or text."""

    kind: str
    text: str
    number: float | None = None


Row = tuple[int, dict[int, Cell]]
"""The number of a row, from 1, and its cells that are not missing by column, from 0."""


class Source(NamedTuple):
    """A table. `notes` is filled while the rows are read."""

    name: str
    rows: Iterator[Row]
    notes: list[str]


def main() -> None:
    """Read the arguments and print the profile."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--sheet", help="profile only this sheet of an XLSX file")
    parser.add_argument("--header-row", type=int, help="the row with the names of the columns")
    parser.add_argument("--encoding", help="of a CSV file")
    parser.add_argument("--delimiter", help="of a CSV file, one character; \\t for a tab")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    try:
        profiles = [profile(each, args.header_row) for each in sources(args)]
    except Unreadable as error:
        sys.exit(f"{args.file}: {shown(str(error), 500)}")
    except OSError as error:
        sys.exit(f"{args.file} cannot be read: {error.strerror or error}")
    except (*_ZIP_ERRORS, expat.ExpatError) as error:
        sys.exit(f"{args.file}: it is no XLSX file, damaged or encrypted: {shown(str(error), 500)}")
    if args.json:
        print(json.dumps(profiles, indent=1))
    else:
        text = "\n\n".join(map(as_markdown, profiles))
        sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")


def sources(args: argparse.Namespace) -> Iterator[Source]:
    """Yield the tables of a file, one at a time."""
    path = args.file
    if not path.is_file():
        raise Unreadable("there is no such file.")
    if path.stat().st_size > MAX_BYTES:
        raise Unreadable(f"it has more than {MAX_BYTES:,} bytes.")
    if path.suffix.lower() in {".xls", ".ods", ".xlsb"}:
        raise Unreadable(f"{path.suffix} cannot be read; save it as .xlsx or .csv first.")
    if path.suffix.lower() in {".xlsx", ".xlsm"}:
        yield from xlsx_sources(path, args.sheet)
    else:
        yield csv_source(path, args.encoding, args.delimiter)


# CSV


def csv_source(path: Path, encoding: str | None, delimiter: str | None) -> Source:
    """Return the table of a CSV file."""
    notes: list[str] = []
    with path.open("rb") as file:
        start = file.read(1_000_000)
    if not start.strip():
        raise Unreadable("it is empty.")
    if encoding is None:
        encoding = guess_encoding(start, notes)
    try:
        text = codecs.getincrementaldecoder(encoding)("replace").decode(start)
    except (LookupError, UnicodeError) as error:
        raise Unreadable(f"there is no encoding {encoding!r}.") from error
    if delimiter is None:
        unquoted = re.sub('"[^"]*"', "", text[:100_000].lstrip("\ufeff\r\n "))
        line = re.split("[\r\n]", unquoted, maxsplit=1)[0]
        delimiter = max(",;\t|", key=line.count)
    delimiter = "\t" if delimiter == "\\t" else delimiter
    if len(delimiter) != 1 or delimiter in '"\r\n\0':
        raise Unreadable("a delimiter is one character.")
    notes.append(f"read as {encoding} with the delimiter {delimiter!r}")
    return Source(path.name, csv_rows(path, encoding, delimiter, notes), notes)


def guess_encoding(start: bytes, notes: list[str]) -> str:
    """Return the encoding of a text that begins so."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            codecs.getincrementaldecoder(encoding)().decode(start)
        except UnicodeDecodeError:
            continue
        if encoding != "utf-8-sig":
            notes.append("not UTF-8: if texts are wrong, choose another --encoding, such as cp1252")
        return encoding
    notes.append("neither UTF-8 nor GB 18030: if texts are wrong, choose another --encoding")
    return "cp1252"


def csv_rows(path: Path, encoding: str, delimiter: str, notes: list[str]) -> Iterator[Row]:
    """Yield the rows of a CSV file, and note those with another number of cells than the first."""
    csv.field_size_limit(MAX_CELL_CHARS)
    width, ragged, first_ragged = 0, 0, 0
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        reader = csv.reader((line.replace("\0", "") for line in file), delimiter=delimiter)
        try:
            for cells in reader:
                if not any(map(str.strip, cells)):
                    continue
                if len(cells) > MAX_COLUMNS:
                    raise Unreadable(f"row {reader.line_num} has more than {MAX_COLUMNS:,} cells.")
                width = width or len(cells)
                if len(cells) != width:
                    ragged += 1
                    first_ragged = first_ragged or reader.line_num
                values = enumerate(map(cell_of_text, cells))
                yield reader.line_num, {at: cell for at, cell in values if cell is not None}
        except csv.Error as error:
            raise Unreadable(f"row {reader.line_num} cannot be read: {error}.") from error
        except UnicodeError as error:
            raise Unreadable(f"it is not text in {encoding}.") from error
    if ragged:
        notes.append(
            f"other number of cells than the first row ({width}): {ragged:,} rows, the first is"
            f" row {first_ragged}"
        )


def cell_of_text(text: str) -> Cell | None:
    """Return the cell of a text, None if it is missing."""
    value = text.strip()
    if value.lower() in _MISSING:
        return None
    typed = typed_cell(value) if len(value) <= 60 else None
    return typed or Cell("text", text)


def typed_cell(value: str) -> Cell | None:
    """Return the cell of a text that is a number, a boolean or a date, else None."""
    if _INTEGER.fullmatch(value):
        return Cell("integer", value, float(value))
    if _NUMBER.fullmatch(value):
        number = float(value.replace(",", ""))
        return Cell("number", value, number) if abs(number) < 1e300 else None
    if value.lower() in {"true", "false"}:
        return Cell("boolean", value.lower())
    found = _DATE.fullmatch(value)
    if not found or not is_day(*map(int, found.group(1, 2, 3))):
        return None
    day = f"{found[1]}-{int(found[2]):02}-{int(found[3]):02}"
    return Cell("date", day + (found[4] or "").replace("T", " "))


def is_day(year: int, month: int, day: int) -> bool:
    """Return True if there is such a day."""
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


# XLSX


def xlsx_sources(path: Path, wanted: str | None) -> Iterator[Source]:
    """Yield the sheets of an XLSX file."""
    with zipfile.ZipFile(path) as archive:
        yield from Workbook(archive).sources(wanted)


class Workbook:
    """An XLSX file: a ZIP file with XML files. Nothing is written to disk."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._remaining = MAX_UNPACKED_BYTES
        entries = archive.infolist()
        if len(entries) > MAX_ENTRIES:
            raise Unreadable(f"it has more than {MAX_ENTRIES:,} files.")
        self._names = {each.filename for each in entries}
        self._strings: list[str] = []
        self._date_styles: set[int] = set()
        self._epoch = datetime(1899, 12, 30)  # noqa: DTZ001 - spreadsheets have no time zone

    def sources(self, wanted: str | None) -> Iterator[Source]:
        """Yield the sheets, or only the wanted one."""
        sheets, targets = self._sheets(), self._targets()
        names = ", ".join(name for name, _, _ in sheets[:50])
        if wanted is not None:
            sheets = [each for each in sheets if each[0] == wanted]
        if not sheets:
            raise Unreadable(f"there is no such sheet; there are: {names}.")
        self._read_strings()
        self._read_styles()
        for name, key, hidden in sheets[:MAX_SHEETS]:
            notes = ["hidden sheet"] if hidden else []
            if len(sheets) > MAX_SHEETS:
                notes.append(f"only the first {MAX_SHEETS} of {len(sheets):,} sheets are read")
            if key in targets:
                yield Source(name, self._rows(targets[key], notes), notes)

    def _parse(
        self,
        name: str,
        start: Callable[[str, dict[str, str]], None],
        end: Callable[[str], None] = lambda _tag: None,
        text: Callable[[str], None] = lambda _text: None,
    ) -> Iterator[None]:
        """Parse a file of the archive; yield after each piece of it.

        Names come without their namespaces. A document type, which could define entities, is
        refused.
        """
        if name not in self._names:
            raise Unreadable(f"it has no file {name}.")

        def refuse(*_given: object) -> None:
            raise Unreadable(f"{name} has a document type, which a spreadsheet never has.")

        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = refuse
        parser.EntityDeclHandler = refuse
        parser.StartElementHandler = lambda tag, given: start(
            local(tag), {local(key): value for key, value in given.items()}
        )
        parser.EndElementHandler = lambda tag: end(local(tag))
        parser.CharacterDataHandler = text
        with self._archive.open(name) as file:
            while chunk := file.read(_CHUNK_BYTES):
                self._remaining -= len(chunk)
                if self._remaining < 0:
                    raise Unreadable(f"it unpacks to more than {MAX_UNPACKED_BYTES:,} bytes.")
                parser.Parse(chunk, False)
                yield
        parser.Parse(b"", True)
        yield

    def _read(self, name: str, start: Callable[[str, dict[str, str]], None]) -> None:
        for _ in self._parse(name, start):
            pass

    def _sheets(self) -> list[tuple[str, str, bool]]:
        """Return name, relation and whether it is hidden for each sheet."""
        found: list[tuple[str, str, bool]] = []

        def start(tag: str, given: dict[str, str]) -> None:
            if tag == "sheet":
                hidden = given.get("state", "visible") != "visible"
                found.append((given.get("name", ""), given.get("id", ""), hidden))
            elif tag == "workbookPr" and given.get("date1904") in {"1", "true"}:
                self._epoch = datetime(1904, 1, 1)  # noqa: DTZ001 - as above

        self._read("xl/workbook.xml", start)
        return found

    def _targets(self) -> dict[str, str]:
        """Return the file of each relation of the workbook."""
        found: dict[str, str] = {}

        def start(tag: str, given: dict[str, str]) -> None:
            if tag == "Relationship" and given.get("TargetMode") != "External":
                path = posixpath.normpath(posixpath.join("/xl", given.get("Target", "")))
                found[given.get("Id", "")] = path.lstrip("/")

        self._read("xl/_rels/workbook.xml.rels", start)
        return found

    def _read_strings(self) -> None:
        if "xl/sharedStrings.xml" not in self._names:
            return
        text = CellText()

        def start(tag: str, _given: dict[str, str]) -> None:
            if tag == "si":
                text.clear()
            text.start(tag)

        def end(tag: str) -> None:
            text.end(tag)
            if tag == "si":
                self._strings.append(text.take())
                if len(self._strings) > MAX_STRINGS:
                    raise Unreadable(f"it has more than {MAX_STRINGS:,} texts.")

        for _ in self._parse("xl/sharedStrings.xml", start, end, text.add):
            pass

    def _read_styles(self) -> None:
        """Find the styles of dates."""
        if "xl/styles.xml" not in self._names:
            return
        dates, styles, inside = set(_DATE_FORMATS), 0, False

        def start(tag: str, given: dict[str, str]) -> None:
            nonlocal styles, inside
            if tag == "numFmt":
                code = _FORMAT_TEXT.sub("", given.get("formatCode", "")[:500]).lower()
                (dates.add if set("ymdhs") & set(code) else dates.discard)(
                    to_index(given.get("numFmtId"))
                )
            elif tag in {"cellStyleXfs", "cellXfs"}:
                inside = tag == "cellXfs"
            elif tag == "xf" and inside:
                if to_index(given.get("numFmtId")) in dates:
                    self._date_styles.add(styles)
                styles += 1

        self._read("xl/styles.xml", start)

    def _rows(self, name: str, notes: list[str]) -> Iterator[Row]:
        """Yield the rows of a sheet."""
        reader = SheetReader(self._cell)
        for _ in self._parse(name, reader.start, reader.end, reader.text.add):
            yield from reader.rows
            reader.rows.clear()
        notes += reader.notes()

    def _cell(self, kind: str, style: int, text: str) -> Cell | None:
        """Return a cell, None if it is missing."""
        if kind == "s":
            at = to_index(text)
            text = self._strings[at] if 0 <= at < len(self._strings) else ""
        if kind not in {"e", "b"} and text.strip().lower() in _MISSING:
            return None
        if kind == "n":
            return self._number(text, style)
        if kind == "d":
            return cell_of_text(text)
        if kind == "b":
            return Cell("boolean", "true" if text.strip() == "1" else "false")
        return Cell("error" if kind == "e" else "text", text)

    def _number(self, text: str, style: int) -> Cell:
        try:
            number = float(text[:100])
        except ValueError:
            return Cell("text", text)
        if not abs(number) < 1e300:
            return Cell("error", text)
        return self._number_or_date(number, is_date=style in self._date_styles)

    def _number_or_date(self, number: float, *, is_date: bool) -> Cell:
        if is_date and 0 <= number < 2_900_000:
            moment = self._epoch + timedelta(seconds=round(number * 86_400))
            if number < 1:
                return Cell("time", f"{moment:%H:%M:%S}")
            return Cell("date", str(moment).removesuffix(" 00:00:00"))
        if number.is_integer() and abs(number) < 1e15:
            return Cell("integer", str(int(number)), number)
        return Cell("number", repr(number), number)


class CellText:
    """Collects the text of a cell or a shared string, without phonetic hints."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._open = False
        self._phonetic = False

    def clear(self) -> None:
        """Forget what was collected."""
        self._parts, self._length, self._open = [], 0, False

    def start(self, tag: str) -> None:
        """An element begins."""
        if tag == "rPh":
            self._phonetic = True
        self._open = tag in {"t", "v"} and not self._phonetic

    def end(self, tag: str) -> None:
        """An element ends."""
        self._phonetic = self._phonetic and tag != "rPh"
        self._open = False

    def add(self, text: str) -> None:
        """Take text if it belongs to a value."""
        if self._open and self._length < MAX_CELL_CHARS:
            self._parts.append(text[: MAX_CELL_CHARS - self._length])
            self._length += len(text)

    def take(self) -> str:
        """Return what was collected."""
        text = "".join(self._parts)
        self.clear()
        return text


class SheetReader:
    """Builds rows from the elements of a sheet."""

    def __init__(self, make_cell: Callable[[str, int, str], Cell | None]) -> None:
        self.rows: list[Row] = []
        self.text = CellText()
        self._make_cell = make_cell
        self._row, self._column = 0, -1
        self._cells: dict[int, Cell] = {}
        self._kind, self._style, self._formula = "", 0, False
        self._merged = self._empty_formulas = 0

    def start(self, tag: str, given: dict[str, str]) -> None:
        """An element begins."""
        self.text.start(tag)
        if tag == "row":
            number = to_index(given.get("r"))
            self._row = number if number > self._row else self._row + 1
            self._column, self._cells = -1, {}
        elif tag == "c":
            found = _REFERENCE.fullmatch(given.get("r", ""))
            self._column = column_index(found[1]) if found else self._column + 1
            if self._column >= MAX_COLUMNS:
                raise Unreadable(f"row {self._row} has more than {MAX_COLUMNS:,} columns.")
            self._kind, self._style = given.get("t", "n"), to_index(given.get("s"))
            self._formula = False
            self.text.clear()
        elif tag == "f":
            self._formula = True
        elif tag == "mergeCell":
            self._merged += 1

    def end(self, tag: str) -> None:
        """An element ends."""
        self.text.end(tag)
        if tag == "c":
            text = self.text.take()
            if self._formula and not text:
                self._empty_formulas += 1
            cell = self._make_cell(self._kind, self._style, text)
            if cell is not None:
                self._cells[self._column] = cell
        elif tag == "row" and self._cells:
            self.rows.append((self._row, self._cells))

    def notes(self) -> list[str]:
        """Return what is unusual about the sheet."""
        found = {"merged cells": self._merged, "formulas without a value": self._empty_formulas}
        return [f"{what}: {number:,}" for what, number in found.items() if number]


def local(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition(" ")[2]


def to_index(text: str | None) -> int:
    """Return a number that counts something, -1 for anything else."""
    digits = (text or "").strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else -1


def column_index(letters: str) -> int:
    """Return the position of a column such as AB, from 0."""
    index = 0
    for letter in letters:
        index = index * 26 + ord(letter) - 64
    return index - 1


# Profile


class Column:
    """What is known of a column."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kinds: Counter[str] = Counter()
        self.examples: dict[str, list[str]] = {}
        self.counts: Counter[str] = Counter()
        self.is_counted = True
        self.numbers, self.mean = 0, 0.0
        self.extremes: dict[str, tuple[Any, Any]] = {}
        self.spaces = self.zeros = self.text_numbers = 0

    def add(self, row: int, cell: Cell, *, count_values: bool) -> bool:
        """Take a cell; return True if its value is new."""
        kind, text, number = cell
        self.kinds[kind] += 1
        examples = self.examples.setdefault(kind, [])
        if len(examples) < 3:
            examples.append(f"row {row}: {shown(text)!r}")
        if number is not None:
            self.numbers += 1
            self.mean += (number - self.mean) / self.numbers
        elif kind == "text":
            self.spaces += text != text.strip()
            self.zeros += bool(_LEADING_ZERO.fullmatch(text.strip()))
            inner = cell_of_text(text)
            self.text_numbers += inner is not None and inner.number is not None
        if kind != "text":
            group, value = ("number", number) if number is not None else (kind, text)
            low, high = self.extremes.get(group, (value, value))
            self.extremes[group] = min(low, value), max(high, value)
        key = text if len(text) <= 100 else f"{text[:60]}… ({len(text)} characters, {hash(text)})"
        if key in self.counts:
            self.counts[key] += 1
            return False
        self.is_counted = self.is_counted and count_values and len(self.counts) < MAX_DISTINCT
        if self.is_counted:
            self.counts[key] = 1
        return self.is_counted

    @property
    def type(self) -> str:
        """The type of its cells; that of the most for mixed ones."""
        kinds = set(self.kinds)
        if len(kinds) <= 1:
            return next(iter(kinds), "empty")
        return "number" if kinds == {"integer", "number"} else "mixed"

    def summary(self, rows: int) -> dict[str, Any]:
        """Return the column as it is shown."""
        groups = list(self.extremes) if self.type != "mixed" else []
        low, high = self.extremes[groups[0]] if groups else (None, None)
        known = self.counts.most_common(1) if self.is_counted else []
        value, times = known[0] if known else ("", 0)
        return {
            "column": self.name,
            "type": self.type,
            "missing": rows - self.kinds.total(),
            "distinct": len(self.counts),
            "distinct_is_minimum": not self.is_counted,
            "min": low,
            "max": high,
            "mean": self.mean if self.numbers and self.type != "mixed" else None,
            "most_frequent": shown(value),
            "most_frequent_count": times,
        }

    def notes(self, rows: int) -> Iterator[str]:
        """Yield what is unusual about the column."""
        if self.type == "mixed":
            kinds = self.kinds.most_common()
            parts = ", ".join(f"{kind} {number:,}" for kind, number in kinds)
            rare = "; ".join(each for kind, _ in kinds[1:] for each in self.examples[kind])
            yield f"mixed types: {parts}; {rare}"
        if self.kinds["error"]:
            yield f"error values: {self.kinds['error']:,}; {'; '.join(self.examples['error'])}"
        if self.zeros:
            yield f"leading zeros: {self.zeros:,} cells; keep them as text"
        if self.text_numbers:
            yield f"numbers as text: {self.text_numbers:,} cells"
        if self.spaces:
            yield f"spaces around text: {self.spaces:,} cells"
        if rows > 1 and len(self.counts) == 1 and self.kinds.total() == rows:
            yield "the same value in all rows"


def profile(source: Source, header_row: int | None) -> dict[str, Any]:
    """Return the profile of a table."""
    rows = iter(source.rows)
    header = next((each for each in rows if header_row is None or each[0] >= header_row), None)
    columns = named_columns(header[1]) if header else {}
    seen: set[int] = set()
    count = equal = first_equal = distinct = 0
    last = max(columns, default=-1)
    for number, cells in rows:
        if count >= MAX_ROWS:
            source.notes.append(f"only the first {MAX_ROWS:,} rows are read")
            break
        count += 1
        for at, cell in cells.items():
            if at not in columns:
                columns[at] = Column(f"column {at + 1} (no name)")
            distinct += columns[at].add(number, cell, count_values=distinct < MAX_DISTINCT_IN_ALL)
        key = hash(tuple(sorted((at, cell.text) for at, cell in cells.items())))
        if key in seen:
            equal += 1
            first_equal = first_equal or number
        seen.add(key)
    if extra := sum(at > last for at in columns):
        source.notes.append(f"cells right of the last named column: in {extra} columns")
    if equal:
        source.notes.append(
            f"equal rows: {equal:,} have an equal row above; first row {first_equal}"
        )
    ordered = [columns[at] for at in sorted(columns)]
    notes = [*source.notes, *(f"{c.name}: {note}" for c in ordered for note in c.notes(count))]
    return {
        "table": shown(source.name, 200),
        "rows": count,
        "header_row": header[0] if header else None,
        "equal_rows": equal,
        "columns": [each.summary(count) for each in ordered],
        "notes": notes,
    }


def named_columns(header: dict[int, Cell]) -> dict[int, Column]:
    """Return a column for each cell of the header; a name that is there twice gets a number."""
    used: Counter[str] = Counter()
    columns: dict[int, Column] = {}
    for at in range(max(header, default=-1) + 1):
        name = shown(header[at].text.strip(), 60) if at in header else f"column {at + 1} (no name)"
        used[name] += 1
        columns[at] = Column(name if used[name] == 1 else f"{name} ({used[name]})")
    return columns


def as_markdown(table: dict[str, Any]) -> str:
    """Return a profile as Markdown."""
    heads = ("column", "type", "missing", "distinct", "min", "max", "mean", "most frequent")
    lines = [
        f"# {in_table(table['table'])}",
        f"{table['rows']:,} rows below the header, {len(table['columns'])} columns",
        "",
        f"| {' | '.join(heads)} |",
        f"|{'---|' * len(heads)}",
    ]
    for each in table["columns"]:
        more = "over " if each["distinct_is_minimum"] else ""
        frequent = f"{each['most_frequent']} ({each['most_frequent_count']:,})"
        cells = (
            *(each["column"], each["type"], f"{each['missing']:,}", f"{more}{each['distinct']:,}"),
            *(as_value(each["min"]), as_value(each["max"]), as_value(each["mean"])),
            frequent if each["most_frequent_count"] > 1 else "",
        )
        lines.append(f"| {' | '.join(map(in_table, cells))} |")
    return "\n".join([*lines, "", *(f"- {shown(note, 500)}" for note in table["notes"])])


def as_value(value: Any) -> str:
    """Return a minimum, maximum or mean."""
    return "" if value is None else f"{value:.10g}" if isinstance(value, float) else shown(value)


def in_table(text: str) -> str:
    """Return text that stays in its cell of a Markdown table."""
    return text.replace("\\", "\\\\").replace("|", "\\|")


def shown(text: str, limit: int = MAX_SHOWN_CHARS) -> str:
    """Return text in one line without invisible characters, cut to a length."""
    line = _UNPRINTABLE.sub(" ", text[: limit + 1])
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


if __name__ == "__main__":
    main()

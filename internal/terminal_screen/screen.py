"""A screen of unlimited width that turns the output of a program into its final lines.

Only the last state of a redrawn line remains. Text without control sequences is unchanged. The
supported sequences are the ones that move the cursor or erase in
https://invisible-island.net/xterm/ctlseqs/ctlseqs.html; all others, such as colours, titles and
links, leave no trace.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from wcwidth import wcwidth

ROWS = 50
"""Number of last lines that a program can change."""
MAX_COLUMN = 512
"""Maximum distance that a sequence moves the cursor beyond the end of a line."""
MAX_ROW_CHARACTERS = 8_192
"""The beginning of a longer line can no longer be changed."""
_MAX_SEQUENCE_CHARACTERS = 256
_MAX_JOINED = 32
_TAB_WIDTH = 8

_PLAIN = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f-\x9f]+")
_CSI = re.compile(r"(?:\x1b\[|\x9b)([0-?]{0,128})[ -/]{0,16}([@-~])")
_ESCAPE = re.compile(r"\x1b[ -/]{0,16}([0-OQ-WYZ\\`-~])")
# of operating system commands, device control and the like: all up to their end is no text
_STRING = re.compile(r"\x1b[\]PX^_]|\x9d")
_STRING_END = re.compile(r"[\x07\x9c]|\x1b\\|(?=[\n\x1b])")
_TORN = re.compile(r"(?:\x1b\[|\x9b)[0-?]{0,128}[ -/]{0,16}\Z|\x1b[ -/]{0,16}\Z")
_SIMPLE = re.compile(r"[ -~]*")


def screen_text(output: str) -> str:
    """Return the text that a terminal shows for an output, including the lines above the screen."""
    screen = OutputScreen()
    return screen.feed(output) + screen.rest()


class OutputScreen:
    """A screen that is fed with the output of a program, in chunks that may tear a sequence.

    Its time is linear in the size of the output, its memory bounded.
    """

    def __init__(self) -> None:
        # a row is its text as long as it only grew, then the list of its cells: a wide character
        # is followed by empty cells
        self._rows: list[str | list[str]] = [""]
        self._row = 0
        self._column: int | None = None
        """None at the end of a row, whose width need not be known then."""
        self._saved = (0, 0)
        self._torn = ""
        self._in_string = False
        self._final: list[str] = []

    def feed(self, text: str) -> str:
        """Obey a chunk of output; return the lines that can no longer change."""
        text, self._torn = self._torn + text, ""
        at = 0
        while at < len(text):
            at = self._step(text, at)
        final, self._final = "".join(self._final), []
        return final

    def rest(self) -> str:
        """Return the lines that can still change."""
        return "\n".join(map(_row_text, self._rows))

    def _step(self, text: str, at: int) -> int:
        """Execute the next element of the text and return the position after it."""
        if self._in_string:
            return self._skip_string(text, at)
        if plain := _PLAIN.match(text, at):
            self._write_lines(plain[0])
            return plain.end()
        if text[at] in "\x1b\x9b\x9d":
            return self._sequence(text, at)
        self._character(text[at])
        return at + 1

    def _sequence(self, text: str, at: int) -> int:
        if sequence := _CSI.match(text, at):
            self._control(sequence[1], sequence[2])
            return sequence.end()
        if start := _STRING.match(text, at):
            self._in_string = True
            return start.end()
        if escape := _ESCAPE.match(text, at):
            self._escape(escape[1])
            return escape.end()
        if len(text) - at < _MAX_SEQUENCE_CHARACTERS and _TORN.match(text, at):
            self._torn = text[at:]
            return len(text)
        return at + 1

    def _skip_string(self, text: str, at: int) -> int:
        end = _STRING_END.search(text, at)
        if end is None:
            return len(text)
        if not end[0] and end.start() == len(text) - 1 and text.endswith("\x1b"):
            self._torn = "\x1b"
            return len(text)
        self._in_string = False
        return end.end()

    def _character(self, character: str) -> None:
        match character:
            case "\r":
                self._column = 0
            case "\b":
                self._move_to(self._row, max(self._known_column() - 1, 0))
            case "\x0b" | "\x0c" | "\x85":
                self._next_row()
            case _:
                pass

    def _write_lines(self, text: str) -> None:
        first, *others = text.split("\n")
        self._write(first)
        for line in others:
            self._next_row()
            self._write(line)

    def _next_row(self) -> None:
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append("")
        if len(self._rows) > ROWS:
            self._finish_row()
        self._column = 0 if self._rows[self._row] else None

    def _finish_row(self) -> None:
        self._final += (_row_text(self._rows.pop(0)), "\n")
        self._row -= 1

    def _write(self, text: str) -> None:
        if not text:
            return
        row = self._rows[self._row]
        if self._column is None and isinstance(row, str):
            self._rows[self._row] = row + text
        else:
            self._overwrite(self._cells(), text)
        self._bound_row()

    def _overwrite(self, cells: list[str], text: str) -> None:
        column = len(cells) if self._column is None else self._column
        cells.extend(" " * (column - len(cells)))
        for number, piece in enumerate(text.split("\t")):
            if number:
                column = _tab(cells, column)
            column = _replace(cells, column, piece)
        self._column = column

    def _bound_row(self) -> None:
        """Make the rows above a row that is too long final, and the beginning of the row."""
        row = self._rows[self._row]
        if len(row) <= 2 * MAX_ROW_CHARACTERS:
            return
        while self._row:
            self._finish_row()
        kept = row[-MAX_ROW_CHARACTERS:]
        self._final.append("".join(row[:-MAX_ROW_CHARACTERS]))
        self._rows[0] = kept
        if self._column is not None:
            self._column = max(self._column - (len(row) - len(kept)), 0)

    def _cells(self) -> list[str]:
        """Return the current row as cells, which can be changed."""
        row = self._rows[self._row]
        if isinstance(row, str):
            row = self._rows[self._row] = _as_cells(row)
        return row

    def _known_column(self) -> int:
        if self._column is None:
            self._column = len(self._cells())
        return self._column

    def _move_to(self, row: int, column: int) -> None:
        self._row = min(max(row, 0), ROWS - 1)
        self._rows += [""] * (self._row + 1 - len(self._rows))
        limit = max(MAX_COLUMN, len(self._rows[self._row]))
        self._column = min(max(column, 0), limit)

    def _escape(self, final: str) -> None:
        match final:
            case "7":
                self._saved = self._row, self._known_column()
            case "8":
                self._move_to(*self._saved)
            case "D" | "E":
                self._next_row()
            case "M":
                self._move_to(self._row - 1, self._known_column())
            case "c":
                self._erase_display(2)
                self._move_to(0, 0)
            case _:
                pass

    def _control(self, parameters: str, final: str) -> None:
        if parameters[:1] in {"<", "=", ">", "?"}:
            return
        numbers = [int(each[:6]) if each.isdecimal() else 0 for each in parameters.split(";")]
        if (move := _MOVES.get(final)) is None:
            self._erase_or_save(final, numbers[0])
            return
        counts = [max(number, 1) for number in (*numbers, 1)]
        row, column = move(self._row, self._known_column(), counts)
        self._move_to(row, column)

    def _erase_or_save(self, final: str, number: int) -> None:
        match final:
            case "J":
                self._erase_display(number)
            case "K":
                self._erase_line(number)
            case "X":
                self._erase_cells(max(number, 1))
            case "s":
                self._escape("7")
            case "u":
                self._escape("8")
            case _:
                pass

    def _erase_line(self, mode: int) -> None:
        if mode == 0 and self._column is None:
            return
        column = self._known_column()
        cells = self._cells()
        match mode:
            case 0:
                _split_wide(cells, column)
                del cells[column:]
            case 1:
                _split_wide(cells, column + 1)
                end = min(column + 1, len(cells))
                cells[:end] = [" "] * end
            case 2:
                cells.clear()
            case _:
                pass

    def _erase_display(self, mode: int) -> None:
        column = self._known_column()
        if mode in {0, 1}:
            self._erase_line(mode)
        ranges = {0: range(self._row + 1, len(self._rows)), 1: range(self._row)}
        for row in ranges.get(mode, range(len(self._rows) if mode == 2 else 0)):  # noqa: PLR2004 - the whole screen
            self._rows[row] = ""
        self._column = column

    def _erase_cells(self, count: int) -> None:
        column = self._known_column()
        cells = self._cells()
        end = min(column + count, len(cells))
        if column < end:
            _split_wide(cells, column)
            _split_wide(cells, end)
            cells[column:end] = [" "] * (end - column)


_MOVES: dict[str, Callable[[int, int, list[int]], tuple[int, int]]] = {
    "A": lambda row, column, by: (row - by[0], column),
    "B": lambda row, column, by: (row + by[0], column),
    "C": lambda row, column, by: (row, column + by[0]),
    "D": lambda row, column, by: (row, column - by[0]),
    "E": lambda row, _, by: (row + by[0], 0),
    "F": lambda row, _, by: (row - by[0], 0),
    "G": lambda row, _, to: (row, to[0] - 1),
    "H": lambda _, __, to: (to[0] - 1, to[1] - 1),
    "a": lambda row, column, by: (row, column + by[0]),
    "d": lambda _, column, to: (to[0] - 1, column),
    "e": lambda row, column, by: (row + by[0], column),
    "f": lambda _, __, to: (to[0] - 1, to[1] - 1),
    "`": lambda row, _, to: (row, to[0] - 1),
}
"""The row and the column to which a sequence moves, by its last character and its numbers."""


def _row_text(row: str | list[str]) -> str:
    return row if isinstance(row, str) else "".join(row).rstrip(" ")


def _as_cells(text: str) -> list[str]:
    cells: list[str] = []
    if _SIMPLE.fullmatch(text):
        cells.extend(text)
        return cells
    for number, piece in enumerate(text.split("\t")):
        if number:
            _tab(cells, len(cells))
        _replace(cells, len(cells), piece)
    return cells


def _replace(cells: list[str], column: int, text: str) -> int:
    """Put a text without tabs over the cells from a column on; return the column behind it."""
    if not text:
        return column
    new: list[str] = []
    if _SIMPLE.fullmatch(text):
        new.extend(text)
    else:
        for character in text:
            width = _width(character)
            if width > 0:
                new += (character, *[""] * (width - 1))
            elif new:
                _join(new, len(new), character)
            else:
                _join(cells, column, character)
    end = column + len(new)
    _split_wide(cells, column)
    _split_wide(cells, end)
    cells[column:end] = new
    return end


def _join(cells: list[str], column: int, character: str) -> None:
    """Add a character without a width to the one before a column."""
    for at in range(column - 1, -1, -1):
        if cells[at]:
            cells[at] += character if len(cells[at]) < _MAX_JOINED else ""
            return


def _tab(cells: list[str], column: int) -> int:
    """Move to the next tab stop; at the end of a row the tab itself is kept."""
    stop = (column // _TAB_WIDTH + 1) * _TAB_WIDTH
    if column >= len(cells):
        cells.extend(("\t", *[""] * (stop - column - 1)))
    else:
        cells.extend(" " * (stop - len(cells)))
    return stop


def _split_wide(cells: list[str], column: int) -> None:
    """Replace a wide character by blanks if a column is inside of it."""
    if not 0 < column < len(cells) or cells[column]:
        return
    start = column
    while start and not cells[start]:
        start -= 1
    end = column
    while end < len(cells) and not cells[end]:
        end += 1
    cells[start:end] = " " * (end - start)


@lru_cache(maxsize=4_096)
def _width(character: str) -> int:
    """Return the number of cells of a character, 0 if it joins the one before it."""
    if "\udc80" <= character <= "\udcff":  # a byte that is not UTF-8
        return 1
    return max(wcwidth(character), 0)

"""What slash commands are made of, and what their handlers work with."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from internal.channels.cli.application import ListedModel
from internal.channels.cli.records import SessionItem
from internal.channels.cli.render.event_rows import align_columns
from internal.channels.cli.render.text import truncate_line
from internal.channels.cli.render.theme import THEMES
from internal.channels.cli.repl.commands.custom import CustomCommand
from internal.channels.cli.repl.session import ReplSession

MAX_CELL_WIDTH = 60


@dataclass
class SlashContext:
    """What handlers work with. `set_theme` recolours the screen, `quit` ends the session."""

    session: ReplSession
    folder: Path
    set_theme: Callable[[str], None]
    quit: Callable[[int], None]
    clear_screen: Callable[[], None]
    pick: Callable[[str], None]
    """Puts a command into the input and opens the list of its values."""
    write: Callable[[str], None]
    """Writes an escape sequence to the terminal."""
    theme: str = next(iter(THEMES))
    sessions: Sequence[SessionItem] = field(default=())
    """The sessions offered as values of `/resume`."""
    models: Sequence[ListedModel] = field(default=())
    custom: Sequence[CustomCommand] = field(default=())

    def print_notes(self, *sentences: str) -> None:
        """Print each sentence as a note."""
        rows = self.session.view.rows
        self.session.note(*(rows.note(sentence) for sentence in sentences))

    def print_message(self, key: str, **values: object) -> None:
        """Print a message of the catalogue as a note."""
        self.print_notes(self.session.messages(key, **values))

    def print_table(self, rows: Sequence[Sequence[str]]) -> None:
        """Print rows in aligned columns; long cells are truncated, blanks before them are kept."""
        cells = [[_truncate_cell(cell) for cell in row] for row in rows]
        self.session.note(*align_columns(cells))

    def is_busy(self) -> bool:
        """Return True, and say so, while a task of this session runs."""
        if self.session.view.current is None:
            return False
        self.print_message("busy")
        return True


def _truncate_cell(cell: str) -> str:
    indent = " " * (len(cell) - len(cell.lstrip(" ")))
    return f"{indent}{truncate_line(cell, MAX_CELL_WIDTH)}"


class Value(NamedTuple):
    """A value that completion offers, with its description."""

    text: str
    meaning: str = ""


Values = Sequence[Value]


@dataclass(frozen=True)
class SlashCommand:
    """A command. `usage` describes its arguments, `values` returns those that completion offers.

    With `picks` each value is a complete argument, and the command alone opens their list.
    """

    name: str
    usage: str
    run: Callable[[SlashContext, str], Awaitable[None]]
    values: Callable[[SlashContext], Values] = lambda _context: ()
    picks: bool = False

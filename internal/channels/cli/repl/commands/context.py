"""The terminal as the handlers of its slash commands see it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from internal.channels.cli.application import ListedModel
from internal.channels.cli.client import GatewayClient
from internal.channels.cli.records import SessionItem
from internal.channels.cli.render.event_rows import align_columns
from internal.channels.cli.render.text import truncate_line
from internal.channels.cli.render.theme import THEMES
from internal.channels.cli.repl.commands.custom import CustomCommand
from internal.channels.cli.repl.session import ReplSession
from internal.channels.commands.command import Command
from internal.i18n.commands import CommandTexts

MAX_CELL_WIDTH = 60


@dataclass
class SlashContext:
    """Context of command handlers. `set_theme` recolours the screen, `quit` ends the session."""

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

    def texts_of(self, name: str) -> CommandTexts:
        """Return the texts of a command."""
        return CommandTexts(name, "terminal", self.session.messages.language)

    async def open_gateway(self) -> GatewayClient:
        """Return the client, once it can be used."""
        return (await self.session.ready()).client

    def say(self, text: str) -> None:
        """Print a note."""
        self.print_notes(text)

    def say_rows(
        self,
        texts: CommandTexts,  # noqa: ARG002 - a table needs no text
        rows: Sequence[Mapping[str, str]],
        notes: Sequence[str] = (),
    ) -> None:
        """Print a table, and notes below it."""
        self.print_table([tuple(row.values()) for row in rows])
        self.print_notes(*notes)

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
        """Return True, and print a note, while a task of this session runs."""
        if self.session.view.current is None:
            return False
        self.print_message("busy")
        return True


def _truncate_cell(cell: str) -> str:
    indent = " " * (len(cell) - len(cell.lstrip(" ")))
    return f"{indent}{truncate_line(cell, MAX_CELL_WIDTH)}"


SlashCommand = Command[SlashContext, None]

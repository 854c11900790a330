"""The screen, the only writer to the terminal: printed rows scroll up, live rows stay below."""

import termios
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import (
    ConditionalContainer,
    Dimension,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.renderer import print_formatted_text
from prompt_toolkit.styles import DynamicStyle, Style
from prompt_toolkit.widgets import SearchToolbar

from internal.channels.cli.render.text import Fragments, cell_width, ellipsize, plain_text
from internal.channels.cli.render.theme import Glyphs, theme_styles
from internal.channels.cli.repl.terminal_io import FrameOutput, PasteInput

MAX_REDRAWS_PER_SECOND = 30
_MAX_MENU_ROWS = 8
_MAX_INPUT_ROWS = 10
_MIN_ROWS = 6
"""With fewer rows only the input is shown."""
_ESCAPE_TIMEOUT_SECONDS = 0.05


class ScreenContent(Protocol):
    """Content of the screen, requested for each frame."""

    def take_rows(self, width: int) -> tuple[list[Fragments], list[Fragments]]:
        """Return the rows to print permanently, and the live rows below them."""
        ...

    def status(self) -> tuple[Fragments, str]:
        """Return the status line and the hint at its right end."""
        ...

    def panel(self, width: int, max_rows: int) -> list[Fragments]:
        """Return the open question, in at most `max_rows` rows."""
        ...

    @property
    def is_picking(self) -> bool:
        """True while Enter takes the first entry of the menu."""
        ...

    def mark(self) -> Fragments:
        """Return the prompt before the input."""
        ...


class LiveArea(NamedTuple):
    """Area of the last frame above the cursor: the width of each row, in columns."""

    width: int = 0
    rows: tuple[int, ...] = ()
    cursor: int = 0

    def wrapped_rows(self, width: int) -> int:
        """Return how many rows a terminal adds above the cursor in a window of another width."""
        return sum(max(row - 1, 0) // width for row in self.rows) + self.cursor // width


class TerminalScreen:
    """Draws at most `MAX_REDRAWS_PER_SECOND` frames, each in one write."""

    def __init__(
        self,
        shown: ScreenContent,
        box: Buffer,
        keys: KeyBindings,
        *,
        streams: tuple[PasteInput, FrameOutput],
        looks: tuple[Glyphs, str],
    ) -> None:
        self.box = box
        self._shown = shown
        self._input, self._output = streams
        self._glyphs, theme = looks
        self._style = Style.from_dict(theme_styles(theme))
        self._tail: list[Fragments] = []
        self._panel: list[Fragments] = []
        self._raw: list[Any] | None = None
        self._drawn = LiveArea()
        self.notifies = True
        """False: the terminal never calls for attention."""
        self._search = SearchToolbar()
        self.app: Application[int] = Application(
            layout=Layout(self._layout()),
            key_bindings=keys,
            style=DynamicStyle(lambda: self._style),
            include_default_pygments_style=False,
            erase_when_done=True,
            min_redraw_interval=1 / MAX_REDRAWS_PER_SECOND,
            terminal_size_polling_interval=None,
            input=self._input,
            output=self._output,
            before_render=self._before,
            after_render=self._after,
        )
        self.app.ttimeoutlen = _ESCAPE_TIMEOUT_SECONDS
        self.app.timeoutlen = 10 * _ESCAPE_TIMEOUT_SECONDS

    def set_theme(self, theme: str) -> None:
        """Use the colours of a theme."""
        self._style = Style.from_dict(theme_styles(theme))

    def refresh(self) -> None:
        """Schedule a frame."""
        self.app.invalidate()

    def wake(self) -> None:
        """Set the terminal up again after another program used it."""
        if self.app.is_running and not self.app.is_done and self._raw is not None:
            termios.tcsetattr(self._input.fileno(), termios.TCSANOW, self._raw)
            self.app.renderer.erase()
            self.app.invalidate()

    def clear(self) -> None:
        """Clear the visible rows; the scrollback buffer stays."""
        self.app.renderer.clear()
        self.app.invalidate()

    def write(self, sequence: str) -> None:
        """Write an escape sequence that shows nothing."""
        self._output.write_raw(sequence)
        self._output.flush()

    def call_attention(self, sentence: str) -> None:
        """Ring, notify and change the title of the window, if the terminal supports it.

        "" restores the title.
        """
        if not sentence:
            self._output.reset_title()
        elif self.notifies:
            self._output.call_attention(sentence)

    @property
    def width(self) -> int:
        """The columns of the terminal."""
        return self._output.get_size().columns

    def _before(self, app: Application[int]) -> None:
        """Print the final rows, inside of the frame that follows."""
        self._output.hold()
        if self._raw is None:
            self._raw = termios.tcgetattr(self._input.fileno())
        width = self.width
        if width < self._drawn.width:
            self._erase_reflowed(app, width)
        final, self._tail = self._shown.take_rows(width)
        self._panel = self._shown.panel(width, self._panel_rows())
        if final or self._shrinks(app):
            app.renderer.erase(leave_alternate_screen=False)
        for row in final:
            text: StyleAndTextTuples = [*row, ("", "\n")]
            print_formatted_text(self._output, text, self._style, color_depth=app.color_depth)

    def _after(self, app: Application[int]) -> None:
        """Remember the area of the frame, and write the frame."""
        screen = app.renderer.last_rendered_screen
        if screen is None:
            self._drawn = LiveArea()
        else:
            cursor = screen.get_cursor_position(app.layout.current_window)
            widths = [
                max(
                    (x + 1 for x, cell in screen.data_buffer[y].items() if cell.char != " "),
                    default=0,
                )
                for y in range(cursor.y)
            ]
            self._drawn = LiveArea(self.width, tuple(widths), cursor.x)
        self._output.release()

    def _erase_reflowed(self, app: Application[int], width: int) -> None:
        """Erase the live rows that a narrower window has wrapped, which moves the cursor down."""
        app.renderer.erase(leave_alternate_screen=False)
        if self._output.reflows:
            self._output.write_raw("\r")
            self._output.cursor_up(self._drawn.wrapped_rows(width))
            self._output.erase_down()

    def _panel_rows(self) -> int:
        """Return how many rows are left for a question beside the input."""
        rows = self._output.get_size().rows
        box = min(self.box.document.line_count, _MAX_INPUT_ROWS, max(rows // 2 - 2, 1))
        return rows - 2 - box if rows >= _MIN_ROWS else 0

    def _shrinks(self, app: Application[int]) -> bool:
        """Return True if the next frame has fewer rows, so that the others must be erased."""
        last, size = app.renderer.last_rendered_screen, self._output.get_size()
        if last is None:
            return False
        wanted = app.layout.container.preferred_height(size.columns, size.rows).preferred
        return last.height > min(wanted, size.rows)

    def _layout(self) -> HSplit:
        enough = Condition(lambda: self._output.get_size().rows >= _MIN_ROWS)
        searching = Condition(lambda: self.app.layout.is_searching)
        box = Window(
            BufferControl(
                self.box,
                search_buffer_control=self._search.control,
                preview_search=True,  # shows the match while it is searched
                focus_on_click=False,
            ),
            height=Dimension(min=1, max=_MAX_INPUT_ROWS),
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=self._prompt,
        )
        tail = Window(
            FormattedTextControl(lambda: _lines(self._tail)),
            height=lambda: Dimension(min=0, preferred=len(self._tail), max=len(self._tail)),
            dont_extend_height=True,
        )
        panel = Window(
            FormattedTextControl(lambda: _lines(self._panel)),
            height=lambda: Dimension.exact(len(self._panel)),
            dont_extend_height=True,
        )
        return HSplit(
            [
                ConditionalContainer(tail, Condition(lambda: bool(self._tail)) & enough),
                ConditionalContainer(panel, Condition(lambda: bool(self._panel)) & enough),
                ConditionalContainer(_line(self._rule), enough),
                ConditionalContainer(_line(self._status), enough),
                box,
                ConditionalContainer(self._search, searching),
                ConditionalContainer(
                    Window(
                        FormattedTextControl(self._menu),
                        height=lambda: Dimension(min=0, max=_MAX_MENU_ROWS),
                        dont_extend_height=True,
                    ),
                    Condition(lambda: self.box.complete_state is not None) & enough,
                ),
            ]
        )

    def _rule(self) -> StyleAndTextTuples:
        return [("class:faint", self._glyphs.rule * self.width)]

    def _status(self) -> StyleAndTextTuples:
        left, hint = self._shown.status()
        width = self.width
        columns = width - cell_width(plain_text(left))
        if columns < 0:
            return [("", ellipsize(plain_text(left), width))]
        if cell_width(hint) + 2 > columns:
            return list(left)
        gap = " " * (columns - cell_width(hint))
        return [*left, ("class:faint", gap + hint)]

    def _prompt(self, line: int, wrapped: int) -> StyleAndTextTuples:
        if self.width < _MIN_ROWS:
            return []
        if line or wrapped:
            return [("", "  ")]
        return list(self._shown.mark())

    def _menu(self) -> StyleAndTextTuples:
        state = self.box.complete_state
        if state is None:
            return []
        chosen = state.complete_index
        if chosen is None and self._shown.is_picking:
            chosen = 0
        first = max((chosen or 0) - _MAX_MENU_ROWS + 1, 0)
        found = state.completions[first : first + _MAX_MENU_ROWS]
        names = [one.display_text for one in found]
        wide = max((cell_width(name) for name in names), default=0)
        rows: StyleAndTextTuples = []
        for number, (name, one) in enumerate(zip(names, found, strict=True), start=first):
            style = "class:menu.chosen" if number == chosen else ""
            meaning = one.display_meta_text
            line = f"  {name}{' ' * (wide - cell_width(name))}  "
            rows += [(style, truncate_cells(line, self.width))]
            columns = self.width - cell_width(line)
            if meaning and columns > 1:
                rows += [("class:faint", truncate_cells(meaning, columns))]
            rows += [("", "\n")]
        return rows[:-1]


def truncate_cells(text: str, width: int) -> str:
    """Return the text, shortened if it is wider than `width`."""
    return text if cell_width(text) <= width else ellipsize(text, width)


def _line(text: Callable[[], StyleAndTextTuples]) -> Window:
    return Window(FormattedTextControl(text), height=1, dont_extend_height=True)


def _lines(rows: Sequence[Fragments]) -> StyleAndTextTuples:
    shown: StyleAndTextTuples = []
    for row in rows:
        shown += [*row, ("", "\n")]
    return shown[:-1]

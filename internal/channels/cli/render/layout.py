"""Rich renderables of the session, and their rows as prompt_toolkit fragments.

rich decides where everything stands. Its styles carry style classes of prompt_toolkit instead of
colours: the screen knows the theme and writes the rows.
"""

import io
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.containers import Lines
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from internal.channels.cli.render.text import MIN_TEXT_WIDTH, RenderedRow, break_line, cell_width

_MAX_RULE_WIDTH = 40
_UNSETTLED = re.compile(r"[*_`~\[<&|\\]")
"""Characters that more text may turn into the start of a span, a link or a table."""
_CONSOLE = Console(file=io.StringIO(), width=80, height=25, color_system=None)


def render_rows(renderable: RenderableType, width: int) -> list[RenderedRow]:
    """Return the rows of a renderable on a terminal of `width` columns."""
    options = _CONSOLE.options.update(width=max(width, 1), height=None)
    return [_to_row(line) for line in _render_lines(_CONSOLE, renderable, options)]


@cache
def style_class(name: str) -> Style:
    """Return a rich style that carries a style class of prompt_toolkit, which knows its colour."""
    return Style(meta={name: True})


class BrokenText(Text):
    """Text that wraps like `render.text`.

    rich breaks lines at blanks only, so it would leave most of a row empty before a Chinese
    sentence, or start a row with its punctuation.
    """

    is_verbatim = False

    def wrap(
        self,
        console: Console,
        width: int,
        *,
        justify: Any = None,
        overflow: Any = None,
        tab_size: int = 8,  # noqa: ARG002 - the signature of Text.wrap; tabs are expanded already
        no_wrap: bool | None = None,  # noqa: ARG002 - as above
    ) -> Lines:
        """Return the rows of the text."""
        rows = Lines()
        for line in self.split(allow_blank=True):
            offsets = break_line(line.plain, max(width, 1), verbatim=self.is_verbatim)
            rows.extend(line.divide(offsets) if offsets else [line])
        if not self.is_verbatim:
            for row in rows:
                row.rstrip()
        if justify in {"center", "right"}:
            rows.justify(console, width, justify=justify, overflow=overflow or "fold")
        return rows

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        widths = [cell_width(line) for line in self.plain.split("\n")]
        return Measurement(1, max(widths, default=1))

    def mark_unsettled(self) -> None:
        """Mark the parts that more text may change."""
        for match in _UNSETTLED.finditer(self.plain):
            if not any(span.start <= match.start() < span.end for span in self._code_spans()):
                self.stylize(style_class("unsettled"), match.start())
                return

    def _code_spans(self) -> list[Any]:
        return [span for span in self.spans if span.style == style_class("code")]


class Prefixed:
    """A renderable with a prefix before its first row and another one before the others.

    The prefixes are left out where they would leave hardly any columns.
    """

    def __init__(self, renderable: RenderableType, first: str, rest: str) -> None:
        self._renderable = renderable
        self._first, self._rest = first, rest

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.render_lines(console, options):
            yield from line
            yield Segment.line()

    def render_lines(self, console: Console, options: ConsoleOptions) -> Iterator[list[Segment]]:
        """Yield the rows."""
        text_width = options.max_width - max(map(cell_width, (self._first, self._rest)))
        narrow = text_width < min(MIN_TEXT_WIDTH, options.max_width)
        inner = options.update(width=options.max_width if narrow else text_width, height=None)
        prefix = self._first
        for line in _render_lines(console, self._renderable, inner):
            yield line if narrow else [Segment(prefix, style_class("marker")), *line]
            prefix = self._rest


class HorizontalRule:
    """A rule, at most 40 columns wide."""

    def __init__(self, character: str) -> None:
        self._character = character

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(_MAX_RULE_WIDTH, options.max_width)
        yield Segment(self._character * width, style_class("marker"))
        yield Segment.line()


def _render_lines(
    console: Console, renderable: RenderableType, options: ConsoleOptions
) -> Iterable[list[Segment]]:
    """Return the rows of a renderable, like `Console.render_lines` without padding.

    Text and prefixes do without the console, which would join the rows, split and crop them again.
    """
    if isinstance(renderable, BrokenText):
        rows = renderable.wrap(console, options.max_width)
        return [list(row.render(console)) for row in rows]
    if isinstance(renderable, Prefixed):
        return renderable.render_lines(console, options)
    return console.render_lines(renderable, options, pad=False)


def _to_row(line: Iterable[Segment]) -> RenderedRow:
    fragments: list[tuple[str, str]] = []
    settled, content = True, ""
    for text, style, _control in line:
        classes = _classes(style) if style else ()
        settled = settled and "unsettled" not in classes
        if "marker" not in classes:
            content += text
        shown = " ".join(f"class:{name}" for name in classes if name != "unsettled")
        if fragments and fragments[-1][0] == shown:
            fragments[-1] = (shown, fragments[-1][1] + text)
        elif text:
            fragments.append((shown, text))
    while fragments and not fragments[-1][1].strip():
        fragments.pop()
    if fragments:
        fragments[-1] = (fragments[-1][0], fragments[-1][1].rstrip())
    return RenderedRow(tuple(fragments), settled, "".join(content.split()))


@lru_cache(1024)
def _classes(style: Style) -> tuple[str, ...]:
    return tuple(style.meta)

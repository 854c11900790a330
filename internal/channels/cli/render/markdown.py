"""Markdown as lines for a terminal, and how much of a text that still grows will stay as it is.

References and HTML are taken literally: a definition further down must not change what is printed
already, and a terminal has no use for tags.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from internal.channels.cli.render.tables import Side, Table, table_lines
from internal.channels.cli.render.text import Fragment, Fragments, StyledLine, plain_text, sanitize
from internal.channels.cli.render.theme import Glyphs

_PARSER = (
    MarkdownIt("commonmark", {"html": False})
    .enable(["table", "strikethrough"])
    .disable("reference")
)
_RULE_WIDTH = 40
_UNSETTLED = re.compile(r"[*_`~\[<&|\\]")
"""What may turn out to begin something, a table included, as long as it stands there as text."""

_STYLES = {"strong": "class:strong", "em": "class:em", "s": "class:strike"}


class MarkdownBlock(NamedTuple):
    """A block of the top level. `source` is how many lines of the text lie before its end.

    `settled` counts the characters, all lines joined with line breaks, that stay as they are
    however the text goes on.
    """

    lines: tuple[StyledLine, ...]
    source: int
    settled: int

    @property
    def text(self) -> str:
        """The characters that `settled` counts."""
        return "\n".join(plain_text(line.body) for line in self.lines)


def parse_blocks(text: str, width: int, glyphs: Glyphs) -> list[MarkdownBlock]:
    """Return the blocks of the top level for a terminal of `width` columns."""
    found: list[MarkdownBlock] = []
    of_one: list[Token] = []
    for token in _PARSER.parse(sanitize(text)):
        of_one.append(token)
        if token.level == 0 and token.nesting <= 0:
            found.append(_Writer(width, glyphs).block(of_one))
            of_one = []
    return found


@dataclass
class _Holder:
    """A list item or a quote: what stands before its first line, and before the others."""

    first: Fragments
    rest: Fragments
    children: int = 0


@dataclass
class _Writer:
    """Writes one block of the top level."""

    width: int
    glyphs: Glyphs
    lines: list[StyledLine] = field(default_factory=list)
    holders: list[_Holder] = field(default_factory=list)
    numbers: list[int | None] = field(default_factory=list)
    leaf: int = 0
    """The line with which the last leaf begins."""
    loose: int = 0
    """How many characters of the last leaf are settled."""
    in_heading: bool = False

    def block(self, tokens: Sequence[Token]) -> MarkdownBlock:
        """Return the block that these tokens are."""
        source = next((token.map[1] for token in tokens if token.map), 0)
        stream = iter(tokens)
        for token in stream:
            self._take(token, stream)
        before = sum(len(plain_text(line.body)) + 1 for line in self.lines[: self.leaf])
        return MarkdownBlock(tuple(self.lines), source, before + self.loose)

    def _take(self, token: Token, stream: Iterator[Token]) -> None:
        match token.type:
            case "bullet_list_open":
                self.numbers.append(None)
            case "ordered_list_open":
                start = token.attrGet("start")
                self.numbers.append(1 if start is None else int(start))
            case "bullet_list_close" | "ordered_list_close":
                self.numbers.pop()
            case "list_item_open":
                self._open_item()
            case "blockquote_open":
                bar: Fragments = (("class:faint", f"{self.glyphs.bar} "),)
                self._apart()
                self.holders.append(_Holder(bar, bar))
            case "list_item_close" | "blockquote_close":
                self.holders.pop()
            case "table_open":
                self._table(stream)
            case _:
                self._leaf(token)

    def _leaf(self, token: Token) -> None:
        match token.type:
            case "inline":
                strong = "class:strong" if self.in_heading else ""
                self._text(token, strong)
            case "heading_open":
                self.in_heading = True
            case "heading_close":
                self.in_heading = False
            case "fence" | "code_block":
                self._code(token.content)
            case "hr":
                rule = self.glyphs.rule * min(_RULE_WIDTH, self._room())
                self._begin()
                self._add(StyledLine((("class:faint", rule),), verbatim=True))
                self.loose = len(rule)
            case _:
                pass

    def _text(self, token: Token, style: str) -> None:
        self._begin()
        settled: int | None = None
        at = 0
        for number, line in enumerate(_inline_lines(token.children or (), style)):
            if number:
                at += 1
            for one, text in line:
                if settled is None and "code" not in one and (open_ := _UNSETTLED.search(text)):
                    settled = at + open_.start()
                at += len(text)
            self._add(StyledLine(tuple(line)))
        self.loose = at if settled is None else settled

    def _code(self, content: str) -> None:
        self._begin()
        self.holders.append(_Holder((("", "  "),), (("", "  "),)))
        lines = content.removesuffix("\n").split("\n")
        for line in lines:
            self._add(StyledLine((("class:code", line),) if line else (), verbatim=True))
        self.holders.pop()
        self.loose = sum(len(line) + 1 for line in lines[:-1])

    def _table(self, stream: Iterator[Token]) -> None:
        self._begin()
        rows: list[list[Fragments]] = []
        sides: list[Side] = []
        for token in stream:
            match token.type:
                case "tr_open":
                    rows.append([])
                case "th_open":
                    sides.append(_side(token))
                case "inline":
                    rows[-1].append(tuple(_inline_lines(token.children or (), "")[0]))
                case "table_close":
                    break
                case _:
                    pass
        table = Table(tuple(rows[0]), tuple(map(tuple, rows[1:])), tuple(sides))
        for line in table_lines(table, self._room(), self.glyphs.rule):
            self._add(line)
        self.loose = 0

    def _open_item(self) -> None:
        number = self.numbers[-1]
        marker = f"{self.glyphs.bullet} "
        if number is not None:
            marker, self.numbers[-1] = f"{number}. ", number + 1
        self.holders.append(_Holder((("class:faint", marker),), (("", " " * len(marker)),)))

    def _begin(self) -> None:
        """Begin a leaf; whatever stands before it is complete."""
        self._apart()
        self.leaf, self.loose = len(self.lines), 0

    def _apart(self) -> None:
        """Set a block apart from the one before it in the same item or quote."""
        if not self.holders:
            return
        if self.holders[-1].children:
            self._add(StyledLine(()))
        self.holders[-1].children += 1

    def _add(self, line: StyledLine) -> None:
        first = tuple(one for holder in self.holders for one in holder.first)
        rest = tuple(one for holder in self.holders for one in holder.rest)
        for holder in self.holders:
            holder.first = holder.rest
        self.lines.append(
            StyledLine(line.body, (*first, *line.first), (*rest, *line.rest), line.verbatim)
        )

    def _room(self) -> int:
        prefix = sum(len(text) for holder in self.holders for _, text in holder.rest)
        return max(self.width - prefix, 1)


def _inline_lines(children: Sequence[Token], style: str) -> list[list[Fragment]]:
    """Return the lines of a paragraph: a line break in the source is one here too."""
    inline = _Inline(style)
    for child in children:
        inline.take(child)
    return inline.lines


class _Inline:
    """Gathers what stands in a paragraph, a heading or a cell."""

    def __init__(self, style: str) -> None:
        self.lines: list[list[Fragment]] = [[]]
        self._styles = [style]
        self._links: list[tuple[str, int]] = []

    def take(self, child: Token) -> None:
        """Take the next token."""
        match child.type:
            case "softbreak" | "hardbreak":
                self.lines.append([])
            case "link_open":
                self._links.append((str(child.attrGet("href") or ""), len(self.lines[-1])))
                self._styles.append("class:link")
            case "link_close":
                self._styles.pop()
                self._name_address(*self._links.pop())
            case "strong_open" | "em_open" | "s_open":
                self._styles.append(_STYLES[child.type.removesuffix("_open")])
            case "strong_close" | "em_close" | "s_close":
                self._styles.pop()
            case "image":
                self._say("class:faint", f"[{child.content}] ({child.attrGet('src')})")
            case "code_inline":
                self._say("class:code", child.content)
            case _:
                self._say("", child.content)

    def _say(self, style: str, text: str) -> None:
        if text:
            self.lines[-1].append((" ".join((*self._styles, style)).strip(), text))

    def _name_address(self, address: str, start: int) -> None:
        if plain_text(self.lines[-1][start:]) not in {address, address.removeprefix("mailto:")}:
            self._say("class:faint", f" ({address})")


def _side(token: Token) -> Side:
    style = str(token.attrGet("style") or "")
    if style.endswith("right"):
        return "right"
    return "center" if style.endswith("center") else "left"

"""Markdown as rich renderables, one per block, that know which of their rows are final.

rich lays out text, tables and code. Three things differ from `rich.markdown.Markdown`, because rows
are printed while the text still grows: the marker of a list item does not depend on later items,
rows that later text could change are marked, and long code and lists are split into parts that need
not be rendered again. Reference definitions and HTML are shown literally for the same reason: a
definition further down must not change a printed row.

This module imports rich; see `render.stream` for when it is loaded.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, blockquote, list_block
from markdown_it.token import Token
from pygments.token import Comment, Generic, Keyword, Name, Number, String
from rich.console import Group, RenderableType
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Span, Text

from internal.channels.cjk_emphasis import use_cjk_emphasis
from internal.channels.cli.render.layout import (
    BrokenText,
    HorizontalRule,
    Prefixed,
    render_rows,
    style_class,
)
from internal.channels.cli.render.tables import Alignment, MarkdownTable
from internal.channels.cli.render.text import RenderedRow, sanitize
from internal.channels.cli.render.theme import Glyphs

_MAX_LEVEL = 20
"""Of quotes and lists inside of each other: a quote is a level, a list and its item are two."""
_BlockRule = Callable[[StateBlock, int, int, bool], bool]


def _make_parser() -> MarkdownIt:
    """Return the parser. Markup nested deeper than `_MAX_LEVEL` becomes text.

    markdown-it itself drops markup nested deeper than its option `maxNesting`.
    """
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_LEVEL + 8})
    rules = parser.block.ruler
    terminated = ["paragraph", "reference", "blockquote"]
    rules.at("blockquote", _limit_level(blockquote), {"alt": [*terminated, "list"]})
    rules.at("list", _limit_level(list_block), {"alt": terminated})
    return use_cjk_emphasis(parser.enable(["table", "strikethrough"]).disable("reference"))


def _limit_level(rule: _BlockRule) -> _BlockRule:
    def limited(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        return state.level < _MAX_LEVEL and rule(state, start, end, silent)

    return limited


_PARSER = _make_parser()
_MIN_SECTION_LINES, _MAX_SECTION_LINES = 40, 200
_HOST_AFTER_USER = re.compile(r"\w+://[^/?#]*@([^/?#]*)")
_INLINE_STYLES = {"strong": "strong", "em": "em", "s": "strike"}


_CODE_THEME = ANSISyntaxTheme(
    {
        Comment: style_class("code.comment"),
        Keyword: style_class("code.keyword"),
        String: style_class("code.literal"),
        Number: style_class("code.literal"),
        Name.Function: style_class("code.name"),
        Name.Class: style_class("code.name"),
        Generic.Inserted: style_class("ok"),
        Generic.Deleted: style_class("failed"),
        Generic.Heading: style_class("faint"),
        Generic.Subheading: style_class("faint"),
    }
)


class Resume(NamedTuple):
    """Parser state for the rest of a block, from the start of one of its parts.

    `prefix` is the opening line of a code fence, `number` the number of an ordered list item.
    """

    prefix: str = ""
    number: int | None = None


class MarkdownBlock(NamedTuple):
    """A block of the top level, or a part of a long one."""

    renderable: RenderableType
    end: int
    """The number of lines of the text before its end."""
    is_code: bool
    resume: Resume | None
    """State for parsing the text from here if this is not the first part of a block, else None."""

    def render(self, width: int) -> list[RenderedRow]:
        """Return the rows of the block on a terminal of `width` columns."""
        return render_rows(self.renderable, width)


def parse_blocks(text: str, glyphs: Glyphs, resume: Resume | None = None) -> list[MarkdownBlock]:
    """Return the blocks of a text. `resume` is the state for the block at its start."""
    prefix, number = resume or Resume()
    text = sanitize(prefix + text)
    offset = prefix.count("\n")
    found: list[MarkdownBlock] = []
    for tokens in _split_top_level(_PARSER.parse(text)):
        kind = tokens[0].type
        if kind == "fence":
            found += _code_sections(tokens[0], text.split("\n"), offset)
        elif kind in {"bullet_list_open", "ordered_list_open"}:
            first = None if found else number
            found += _list_items(tokens, glyphs, offset, first)
        else:
            end = next((token.map[1] for token in tokens if token.map), 0) - offset
            renderable = _BlockBuilder(glyphs).build(tokens)
            found.append(MarkdownBlock(renderable, end, kind == "code_block", None))
    if found and resume is not None:
        found[0] = found[0]._replace(resume=resume)
    return found


def _split_top_level(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    block: list[Token] = []
    for token in tokens:
        block.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield block
            block = []


def _code_sections(fence: Token, source: Sequence[str], offset: int) -> Iterator[MarkdownBlock]:
    """Split a code fence into sections, each highlighted by itself.

    So the cost of a frame does not grow with the fence. A section ends where a blank line comes
    before a line that is not indented, or after `_MAX_SECTION_LINES`.
    """
    start, end = _lines_of(fence)
    lines = _code_of(fence).split("\n")
    prefix, at = f"{source[start]}\n", 0
    while at < len(lines) or not at:
        size = _section_size(lines[at:])
        is_last = at + size >= len(lines)
        code = "\n".join(lines[at : at + size])
        section_end = end if is_last else start + 1 + at + size
        resume = Resume(prefix) if at else None
        code_text = CodeText(code, _language_of(fence))
        code_text.mark_unsettled()
        yield MarkdownBlock(_indent(code_text), section_end - offset, True, resume)
        at += size


def _section_size(lines: Sequence[str]) -> int:
    for size in range(_MIN_SECTION_LINES, min(len(lines), _MAX_SECTION_LINES)):
        if not lines[size - 1] and lines[size][:1].strip():
            return size
    return min(len(lines), _MAX_SECTION_LINES)


def _list_items(
    tokens: Sequence[Token], glyphs: Glyphs, offset: int, first: int | None
) -> Iterator[MarkdownBlock]:
    start = int(tokens[0].attrGet("start") or 1) if tokens[0].type == "ordered_list_open" else None
    number = start if first is None else first
    items = [
        n for n, token in enumerate(tokens) if token.type == "list_item_open" and token.level == 1
    ]
    ends = [_lines_of(tokens[n])[0] for n in items[1:]] + [_lines_of(tokens[0])[1]]
    for index, (at, end) in enumerate(zip(items, ends, strict=True)):
        last = items[index + 1] if index + 1 < len(items) else len(tokens) - 1
        marker = f"{glyphs.bullet} " if number is None else f"{number}. "
        renderable = _BlockBuilder(glyphs).build(tokens[at + 1 : last - 1], marker)
        resume = Resume(number=number) if index else None
        yield MarkdownBlock(renderable, end - offset, False, resume)
        number = None if number is None else number + 1


def _indent(code: RenderableType) -> Prefixed:
    return Prefixed(code, "  ", "  ")


def _code_of(token: Token) -> str:
    return token.content.removesuffix("\n")


def _language_of(token: Token) -> str:
    return (token.info.split() or [""])[0]


def _lines_of(token: Token) -> tuple[int, int]:
    start, end = token.map or (0, 0)
    return start, end


class CodeText(BrokenText):
    """Code, highlighted if the language is known. It breaks at the edge and keeps its blanks."""

    is_verbatim = True

    def __init__(self, code: str, language: str = "") -> None:
        super().__init__(code)
        self.spans = [*_highlight(code, language)]
        if not self.spans:
            self.stylize(style_class("code"))

    def mark_unsettled(self) -> None:
        """Mark the last line."""
        self.stylize(style_class("unsettled"), self.plain.rfind("\n") + 1)


@lru_cache(64)
def _highlight(code: str, language: str) -> Sequence[Span]:
    if not language:
        return ()
    spans = Syntax(code, language, theme=_CODE_THEME).highlight(code).spans
    # pygments adds a line break at the end
    return [one._replace(end=min(one.end, len(code))) for one in spans if one.start < len(code)]


class _BlockBuilder:
    """Builds the renderable of one block and marks the parts of its last leaf that may change."""

    def __init__(self, glyphs: Glyphs) -> None:
        self._glyphs = glyphs
        self._last_leaf: BrokenText | MarkdownTable | None = None

    def build(self, tokens: Sequence[Token], marker: str | None = None) -> RenderableType:
        """Return the renderable of the tokens; with a `marker`, of a list item."""
        children = self._children(iter(tokens))
        if self._last_leaf is not None:
            self._last_leaf.mark_unsettled()
        block = _stack(children)
        return block if marker is None else _list_item(block, marker)

    def _children(self, stream: Iterator[Token], until: str = "") -> list[RenderableType]:
        children: list[RenderableType] = []
        for token in stream:
            if token.type == until:
                break
            if (child := self._child(token, stream)) is not None:
                children.append(child)
        return children

    def _child(self, token: Token, stream: Iterator[Token]) -> RenderableType | None:
        child: RenderableType | None = None
        match token.type:
            case "inline":
                child = self._leaf(_inline_text(token.children or ()))
            case "heading_open":
                heading = self._leaf(_inline_text(next(stream).children or ()))
                heading.stylize(style_class("strong"))
                child = heading
            case "fence" | "code_block":
                child = _indent(self._leaf(CodeText(_code_of(token), _language_of(token))))
            case "hr":
                self._last_leaf = None
                child = HorizontalRule(self._glyphs.rule)
            case "table_open":
                child = self._table(stream)
            case "blockquote_open":
                bar = f"{self._glyphs.bar} "
                quoted = _stack(self._children(stream, "blockquote_close"))
                child = Prefixed(quoted, bar, bar)
            case "bullet_list_open" | "ordered_list_open":
                child = self._list(token, stream)
            case _:
                pass
        return child

    def _leaf(self, leaf: BrokenText) -> BrokenText:
        self._last_leaf = leaf
        return leaf

    def _list(self, opening: Token, stream: Iterator[Token]) -> RenderableType:
        ordered = opening.type == "ordered_list_open"
        start = opening.attrGet("start")
        number = 1 if start is None else int(start)
        items = _List()
        for token in stream:
            if token.type == opening.type.replace("open", "close"):
                break
            marker = f"{number}. " if ordered else f"{self._glyphs.bullet} "
            items.renderables.append(
                _list_item(_stack(self._children(stream, "list_item_close")), marker)
            )
            number += 1
        return items

    def _table(self, stream: Iterator[Token]) -> RenderableType:
        rows: list[list[Text]] = []
        alignments: list[Alignment] = []
        for token in stream:
            match token.type:
                case "tr_open":
                    rows.append([])
                case "th_open":
                    alignments.append(_alignment(token))
                case "inline":
                    rows[-1].append(_inline_text(token.children or ()))
                case "table_close":
                    break
                case _:
                    pass
        table = MarkdownTable(rows[0], rows[1:], alignments, self._glyphs.rule)
        self._last_leaf = table
        return table


class _List(Group):
    """The items of a list: no blank row stands before a list inside of an item."""


def _stack(children: Sequence[RenderableType]) -> RenderableType:
    """Return the children below each other, set apart by blank rows unless they are lists."""
    parts: list[RenderableType] = []
    for number, child in enumerate(children):
        if number and not isinstance(child, _List):
            parts.append(Text(""))
        parts.append(child)
    return parts[0] if len(parts) == 1 else Group(*parts)


def _list_item(content: RenderableType, marker: str) -> RenderableType:
    return Prefixed(content, marker, " " * len(marker))


def _inline_text(children: Iterable[Token]) -> BrokenText:
    """Return the text of a paragraph, heading or cell. A line break in the source stays one."""
    text = BrokenText()
    styles: list[str] = []
    links: list[tuple[str, int]] = []
    for child in children:
        match child.type:
            case "softbreak" | "hardbreak":
                _append(text, "\n", [])
            case "link_open":
                links.append((str(child.attrGet("href") or ""), len(text)))
                styles.append("link")
            case "link_close":
                styles.pop()
                target = _unnamed_target(*links.pop(), text.plain)
                _append(text, target and f" ({target})", [*styles, "faint"])
            case "strong_open" | "em_open" | "s_open":
                styles.append(_INLINE_STYLES[child.type.removesuffix("_open")])
            case "strong_close" | "em_close" | "s_close":
                styles.pop()
            case "image":
                _append(text, f"[{child.content}] ({child.attrGet('src')})", [*styles, "faint"])
            case "code_inline":
                _append(text, child.content, [*styles, "code"])
            case _:
                _append(text, child.content, styles)
    return text


def _unnamed_target(address: str, start: int, text: str) -> str:
    """Return the target of the link at an offset of the text, unless its text is the target."""
    if text[start:] not in {address, address.removeprefix("mailto:")}:
        return address
    host_after_user = _HOST_AFTER_USER.match(address)
    return host_after_user[1] if host_after_user else ""


def _append(text: Text, content: str, styles: Sequence[str]) -> None:
    start = len(text)
    text.append(content)
    for name in styles:
        text.stylize(style_class(name), start)


def _alignment(token: Token) -> Alignment:
    style = str(token.attrGet("style") or "")
    return next((side for side in ("right", "center") if style.endswith(side)), "left")

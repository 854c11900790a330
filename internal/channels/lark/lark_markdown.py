"""Markdown that a model wrote, in a form in which Lark shows code exactly and nothing is active.

Cards (JSON 2.0) render CommonMark with tables and with tags of Lark, such as `<at>`, `<font>` and
`<text_tag>`; `&#60;` is shown as `<`. Rich texts render part of it, texts only tags and links;
both have no entities: there an invisible character makes a tag or a link inactive.
Source: open.feishu.cn, "Rich text (Markdown) component" and "Message content".
"""

import html
import posixpath
import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from internal.agent.domain.text import is_invisible, truncate_line
from internal.channels.cjk_emphasis import find_separators, use_cjk_emphasis
from internal.channels.lark.card_dialect import (
    adapt_headings,
    adapt_text,
    footnote_ids,
    indent_lists,
)
from internal.normal_forms.urls import split_url

MAX_NESTING, MAX_COLUMNS = 8, 50
"""Quotes and lists inside of each other, and columns of a table; Lark documents no limit."""

_CONTAINER = r"(?:[ \t]*(?:>|(?:[-*+]|[0-9]{1,9}[.)])[ \t]))"
_DEEP_LINE = re.compile(rf"^({_CONTAINER}{{{MAX_NESTING}}}){_CONTAINER}+")
_DEEP_ITEM = re.compile(rf"^([ \t]{{{4 * MAX_NESTING}}})[ \t]+(?=[-*+>]|[0-9]{{1,9}}[.)])")
_MAX_PARSED_NESTING = 60  # levels of tokens, of which a list has two
_NEWLINES = re.compile(r"\r\n?")
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")
_TICKS = re.compile(r"`+")
_BRACKETS = re.compile(r"\\.|[\[\]]", re.DOTALL)
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_CELL_END = re.compile(r"(?<!\\)\|")
_DEFINITION = re.compile(r"[\s>*+\-\d.)]*\[(?:[^\[\]\\]|\\.)*\](?=:)", re.DOTALL)
_TARGET = re.compile(
    r"\(\s*(?P<url>[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)"
    r"(?:\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?\s*\)"
)
_BRACKETED_TARGET = re.compile(r"\(\s*<(?P<url>[^<>\n]*)>(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)")
_HOST = r"(?:[\w-]+\.)+[^\W\d_]{2,63}"
_CLAIMED_HOST = re.compile(rf"(?:://(?:[^/\s@]*@)?|\b(?=www\.))({_HOST})")
_ADDRESS = re.compile(rf"({_HOST})(?::\d+)?(?:[/?#]\S*)?")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_SERVER_PATH = re.compile(r"file:|/(?!/)", re.IGNORECASE)
"""The target of a link that nobody can open from Lark."""
_MARKS = re.compile(r"[*_~`\\!\[\]]")
_ACTIVE = re.compile(r"[*_~`\\!\[\]()<>&\s]+")
"""Characters that the alternative text of a picture cannot contain."""
_BREAK = "\u200b"
_MAY_NEED_SEPARATORS = re.compile(r"[^\w\s][*~]|[*~][^\w\s]")
_TAG_LINE = re.compile(r"\n[ \t]*<[A-Za-z/!?]")
_TEXT_TAG = re.compile(r"<(?=/?(?:at|a|b|i|u|s)\b)", re.IGNORECASE)
"""The tags of a text message, which has no code."""
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_UNUSUAL = re.compile(r"[^\w.:\[\]/-]")
_MAX_SHOWN_TARGET = 80

_blocks = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_PARSED_NESTING})
_blocks.enable("table").disable(["reference", "inline"])
_inlines = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_PARSED_NESTING})
_inlines.enable(["table", "strikethrough"]).disable(["reference", "image"])
use_cjk_emphasis(_inlines)
_images = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_PARSED_NESTING})
_BREAKS = frozenset({"softbreak", "hardbreak"})
_SUMMARY_MARKUP = 8  # characters of source for one that is shown


class AnswerBlock(NamedTuple):
    """A part of a text: code, a table, or everything between them.

    `text` is the code, the source of the table, or other text as Markdown for a rich text. `card`
    is Markdown for a card, `plain` is for a text message.
    """

    kind: Literal["text", "table", "code"]
    text: str
    card: str
    plain: str
    language: str = ""

    @property
    def is_shown_table(self) -> bool:
        """True for a table that a card shows as such; one of too many columns becomes code."""
        columns = self.text.count("|", 0, self.text.find("\n"))
        return self.kind == "table" and columns <= MAX_COLUMNS

    def part(self, start: int, end: int, head: int = 0) -> "AnswerBlock":
        """Return these lines of the block, after its first `head` lines."""
        text, card, plain = (
            "\n".join([*lines[:head], *lines[start:end]])
            for lines in (each.split("\n") for each in (self.text, self.card, self.plain))
        )
        if self.kind == "code":
            return code_block(text, self.language)
        return self._replace(text=text, card=card, plain=plain)


def code_block(code: str, language: str = "") -> AnswerBlock:
    """Return code as a block."""
    fenced = fence(code, language)
    plain = _TEXT_TAG.sub(f"<{_BREAK}", fenced).replace("](http", f"]{_BREAK}(http")
    return AnswerBlock("code", code, fenced, plain, language)


Pictures = Mapping[str, str]
"""The image keys of pictures by their targets in a text; "" for one that is not shown there."""
NO_PICTURES: Pictures = MappingProxyType({})


def parse_markdown(text: str, pictures: Pictures = NO_PICTURES) -> list[AnswerBlock]:
    """Return the blocks of a text. Code is kept exactly; images become links, tags plain text.

    Code inside of lists and quotes moves out of them, since Lark wants it at the start of a line.
    Images of `pictures` are shown in cards, except in tables; elsewhere they are their text.
    """
    source = _move_code_out(limit_nesting(_NEWLINES.sub("\n", text)))
    source = indent_lists(source, _blocks)
    lines, tokens = source.split("\n"), _blocks.parse(source)
    adapt_headings(lines, tokens)
    marked = _mark_lines(lines, tokens, _Document(footnote_ids(source), pictures))
    found: list[AnswerBlock] = []
    done = 0

    def add(kind: Literal["text", "table"], start: int, end: int) -> None:
        if start < end:
            rich, card, plain = ("\n".join(part) for part in zip(*marked[start:end], strict=True))
            text = "\n".join(lines[start:end]) if kind == "table" else rich
            found.append(AnswerBlock(kind, text, card, plain))

    for token in tokens:
        if token.map is None or token.level or token.type not in {"fence", "table_open"}:
            continue
        start, end = token.map
        add("text", done, start)
        if token.type == "fence":
            found.append(code_block(token.content.removesuffix("\n"), token.info.strip()))
        else:
            add("table", start, end)
        done = end
    add("text", done, len(lines))
    return found


def as_card_markdown(blocks: Iterable[AnswerBlock], max_tables: int) -> str:
    """Return Markdown for a card with at most `max_tables` tables; others become code.

    So do tables of more than `MAX_COLUMNS` columns. A blank line is before and after a table.
    """
    parts: list[str] = []
    is_after_table = False
    for block in blocks:
        is_kept = block.kind != "table" or (max_tables > 0 and block.is_shown_table)
        is_table = is_kept and block.kind == "table"
        part = block.card if is_kept else fence(block.text)
        if parts and (is_table or is_after_table):
            parts[-1] = parts[-1].removesuffix("\n") + "\n"
            part = part.removeprefix("\n")
        parts.append(part)
        max_tables -= is_table
        is_after_table = is_table
    return "\n".join(parts)


def as_plain_text(blocks: Iterable[AnswerBlock]) -> str:
    """Return the text for a text message, in which Lark interprets tags and links only."""
    return "\n".join(block.plain for block in blocks)


def as_summary(blocks: Iterable[AnswerBlock], max_chars: int) -> str:
    """Return the beginning without markup in one line, for previews and notifications."""
    source = "\n".join(block.card for block in blocks)[: max_chars * _SUMMARY_MARKUP]
    parts: list[str] = []
    for token in _inlines.parse(source):
        if token.type != "inline":
            parts.append(token.content or " ")
        parts += [" " if part.type in _BREAKS else part.content for part in token.children or ()]
    return truncate_line("".join(parts), max_chars)


def fence(code: str, language: str = "") -> str:
    """Return a code block that shows the code exactly and that its content cannot end."""
    longest = max((len(run) for run in _TICKS.findall(code)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{code}\n{ticks}" if code else f"{ticks}{language}\n{ticks}"


def escape_active(text: str) -> str:
    """Return a text in which Lark finds no tag outside of cards; it looks the same."""
    return _TAG.sub(f"<{_BREAK}", text)


def escape_links(text: str) -> str:
    """Return a text in which a text message has no links; it looks the same."""
    return text.replace("](", f"]{_BREAK}(")


def limit_nesting(text: str) -> str:
    """Return Markdown in which quotes and lists are at most `MAX_NESTING` levels deep.

    The text of deeper ones is kept. Code blocks are not changed.
    """
    lines = text.split("\n")
    limited = [_DEEP_ITEM.sub(r"\1", _DEEP_LINE.sub(r"\1", line)) for line in lines]
    if limited == lines:
        return text
    for token in _code_tokens(_blocks.parse(text)):
        start, end = token.map or (0, 0)
        limited[start:end] = lines[start:end]
    return "\n".join(limited)


def find_fixed_lines(text: str) -> set[int]:
    """Return the numbers of the lines of code blocks and tables."""
    kinds = {"fence", "code_block", "table_open"}
    maps = [token.map for token in _blocks.parse(text) if token.type in kinds]
    return {number for place in maps if place is not None for number in range(*place)}


def _code_tokens(tokens: Sequence[Token]) -> list[Token]:
    return [token for token in tokens if token.type in {"fence", "code_block"}]


def _move_code_out(text: str) -> str:
    """Return the text with every code block as a fence at the start of a line."""
    lines, parts = text.split("\n"), list[str]()
    done, is_nested = 0, False
    for token in _code_tokens(_blocks.parse(text)):
        start, end = token.map or (0, 0)
        parts += _between(lines[done:start], is_nested=is_nested)
        language = next(iter(token.info.split()), "")
        code = token.content.removesuffix("\n")
        parts.append(fence(code, language if _LANGUAGE.fullmatch(language) else ""))
        done, is_nested = end, token.level > 0
    return "\n".join([*parts, *_between(lines[done:], is_nested=is_nested)])


def _between(lines: Sequence[str], *, is_nested: bool) -> list[str]:
    """Return the lines between code; after nested code they would be indented too far.

    The text of an inner list ends where a line is indented less, so each line loses the least
    indentation so far: text after a fence never looks like indented code.
    """
    if not lines:
        return []
    outdented, least = list[str](), max(map(len, lines)) if is_nested else 0
    for line in lines:
        if words := line.lstrip(" \t"):
            least = min(least, len(line) - len(words))
        outdented.append(line[least:])
    return ["\n".join(outdented)]


def match_pictures(text: str, names: Sequence[str]) -> dict[str, str]:
    """Return the names of files that a text shows as images, by the targets of those images.

    A target is the name, ends with it after a folder, or has the last part of one name only.
    """
    found: dict[str, str] = {}
    for token in _images.parse(_NEWLINES.sub("\n", text)):
        for part in token.children or ():
            if part.type != "image":
                continue
            path = unquote(str(part.attrs["src"]))
            ends = [name for name in names if f"/{path}".endswith(f"/{name}")]
            same = [name for name in names if posixpath.basename(name) == posixpath.basename(path)]
            if ends or len(same) == 1:
                found[path] = max(ends, key=len) if ends else same[0]
    return found


def hide_pictures(card: str, keys: Iterable[str]) -> str:
    """Return Markdown for a card with the texts of the pictures that have these image keys."""
    for key in keys:
        card = re.sub(rf"!\[([^\]]*)\]\({re.escape(key)}\)", r"\1", card)
    return card


Marked = tuple[str, str, str]
"""A text as it is written in rich texts, in cards and in texts."""


class _Document(NamedTuple):
    """Facts about the whole text."""

    footnotes: frozenset[str]
    pictures: Pictures


def _mark_lines(lines: Sequence[str], tokens: Sequence[Token], document: _Document) -> list[Marked]:
    """Return the forms of each line."""
    rows = {
        number
        for token in tokens
        if token.type == "table_open" and token.map is not None
        for number in range(*token.map)
    }
    found = [
        _mark_row(line, document) if number in rows else _mark(line, [], {})
        for number, line in enumerate(lines)
    ]
    for token in tokens:
        if token.type == "inline" and token.map is not None and token.map[0] not in rows:
            start, end = token.map
            text = "\n".join(lines[start:end])
            forms = [form.split("\n") for form in _mark_text(text, document)]
            found[start:end] = zip(*forms, strict=True)
    return found


def _mark_row(row: str, document: _Document) -> Marked:
    """Mark the cells of a row; a code span ends with its cell."""
    hidden = document._replace(pictures=dict.fromkeys(document.pictures, ""))
    cells = [_mark_text(cell, hidden, in_cell=True) for cell in _CELL_END.split(row)]
    rich, card, plain = ("|".join(form) for form in zip(*cells, strict=True))
    return rich, card, plain


def _mark_text(text: str, document: _Document, *, in_cell: bool = False) -> Marked:
    """Mark a paragraph, a heading or a cell."""
    outside = [
        (start, end, adapt_text(text[start:end], document.footnotes, in_cell=in_cell))
        for start, end in _outside(text, _code_spans(text))
    ]
    text = _apply(text, outside)
    if _MAY_NEED_SEPARATORS.search(text):
        places = find_separators(_inlines, text)
        text = _apply(text, [(place, place, _BREAK) for place in places])
    return _mark(text, _code_spans(text), document.pictures)


Edit = tuple[int, int, str]
"""The start and the end of a part of a text, and its replacement."""


def _mark(text: str, spans: Sequence[Edit], pictures: Pictures) -> Marked:
    """Return a text with marked links and without active tags; `spans` are its code."""
    if not any(sign in text for sign in ("<", "](", "]:", "\\")):
        return text, text, text
    links, shown, words = _link_edits(text, spans, pictures)
    if definition := _DEFINITION.match(text):
        links.append((definition.end(), definition.end(), " "))
    outside = _outside(text, spans)
    tags = [
        (found.end(), found.end(), _BREAK)
        for start, end in outside
        for found in _TAG.finditer(text, start, end)
    ]
    escapes = [
        (found.start(), found.start() + 1, "")
        for start, end in outside
        for found in _ESCAPED.finditer(text, start, end)
    ]
    links_and_words = [*links, *words]
    plain = _TEXT_TAG.sub(
        f"<{_BREAK}", _apply(text, _without_overlaps([*links_and_words, *tags, *escapes]))
    )
    return (
        _apply(text, _without_overlaps([*links_and_words, *tags])),
        _apply(text, _without_overlaps([*links, *shown, *_tag_edits(text, spans)])),
        escape_links(plain),
    )


def _without_overlaps(edits: Sequence[Edit]) -> list[Edit]:
    """Return the edits that are not inside another one, such as in the target of a picture."""
    found: list[Edit] = []
    for start, end, replacement in sorted(edits):
        if not found or start >= found[-1][1]:
            found.append((start, end, replacement))
    return found


def _apply(text: str, edits: Sequence[Edit]) -> str:
    parts: list[str] = []
    done = 0
    for start, end, replacement in sorted(edits):
        parts += [text[done:start], replacement]
        done = end
    return "".join([*parts, text[done:]])


def _code_spans(text: str) -> list[Edit]:
    """Return the inline code of a paragraph, by the rules of CommonMark."""
    runs = list(_TICKS.finditer(text))
    by_length: dict[int, list[int]] = defaultdict(list)
    for run in runs:
        by_length[len(run[0])].append(run.start())
    found: list[Edit] = []
    done = 0
    for run in runs:
        start, end = run.span()
        if start < done:
            continue
        start += _is_escaped(text, start, done)
        closers = by_length[end - start]
        number = bisect_right(closers, end - 1)
        if start < end and number < len(closers):
            done = closers[number] + end - start
            if not _TAG_LINE.search(text, start, done):  # HTML ends the paragraph, so it is no code
                found.append((start, done, ""))
    return found


def _is_escaped(text: str, position: int, since: int) -> bool:
    """Return True for an odd number of backslashes in front of a character."""
    before = text[since:position]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _tag_edits(text: str, spans: Sequence[Edit]) -> list[Edit]:
    """Return the edits that show every `<` outside of code as itself."""
    found: list[Edit] = []
    for start, end in _outside(text, spans):
        position = text.find("<", start, end)
        while position >= 0:
            escaped = _is_escaped(text, position, start)
            found.append((position - escaped, position + 1, "&#60;"))
            position = text.find("<", position + 1, end)
    return found


def _outside(text: str, spans: Sequence[Edit]) -> list[tuple[int, int]]:
    """Return the parts of a text that are not code."""
    starts = [0, *(end for _, end, _ in spans)]
    return list(zip(starts, [*(start for start, _, _ in spans), len(text)], strict=True))


def _link_edits(
    text: str, spans: Sequence[Edit], pictures: Pictures
) -> tuple[list[Edit], list[Edit], list[Edit]]:
    """Return the edits of links, the edits that show pictures, and the edits that name them.

    Images that are not in `pictures` become links; the targets of misleading links are shown.
    """
    found, shown, words = list[Edit](), list[Edit](), list[Edit]()
    open_: list[int] = []
    for start, end in _outside(text, spans):
        for bracket in _BRACKETS.finditer(text, start, end):
            position = bracket.start()
            if bracket[0] == "[":
                open_.append(position)
            elif bracket[0] == "]" and open_:
                opener = open_.pop()
                if not text.startswith("(", position + 1):
                    continue
                if (picture := _picture_edits(text, opener, position, pictures)) is not None:
                    shown += picture[0]
                    words += picture[1]
                else:
                    found += _judge_link(text, opener, position)
    return found, shown, words


def _picture_edits(
    text: str, opener: int, closer: int, pictures: Pictures
) -> tuple[list[Edit], list[Edit]] | None:
    """Return the edits that show a picture, and the edits that name it, or None without one."""
    target = _TARGET.match(text, closer + 1) or _BRACKETED_TARGET.match(text, closer + 1)
    if target is None or not pictures or text[opener - 1 : opener] != "!":
        return None
    path = unquote(html.unescape(_ESCAPED.sub(r"\1", target["url"])))
    key = pictures.get(path)
    if key is None:
        return None
    label = _MARKS.sub("", text[opener + 1 : closer]).strip() or path.rpartition("/")[2]
    label = _ACTIVE.sub(" ", label).strip()
    start, end = opener - 1, target.end()
    words: list[Edit] = [(start, end, label)]
    return ([(start, end, f"![{label}]({key})")] if key else words), words


def _judge_link(text: str, opener: int, closer: int) -> list[Edit]:
    """Return the edits of one link; a target that is no web address is shown as text."""
    target = _TARGET.match(text, closer + 1)
    url = "" if target is None else html.unescape(_ESCAPED.sub(r"\1", target["url"]))
    scheme = _SCHEME.match(url)
    if target is not None and _SERVER_PATH.match(url):
        return _unlinked(text, opener, closer, target)
    if target is None or (scheme is not None and scheme[1].lower() not in {"http", "https"}):
        return [(closer + 1, closer + 1, " ")]
    label, host = text[opener + 1 : closer], _host(url)
    marks = len(text[:opener]) - len(text[:opener].rstrip("!"))
    found: list[Edit] = [(opener - marks, opener, "")] if marks else []
    if all(is_invisible(char) for char in html.unescape(_MARKS.sub("", label))):
        return [*found, (closer, closer, host)]
    if any(claimed != host.removeprefix("www.") for claimed in _claimed_hosts(label)):
        return [*found, (target.end(), target.end(), f" ({host})")]
    return found


def _unlinked(text: str, opener: int, closer: int, target: re.Match[str]) -> list[Edit]:
    """Return the edits that leave the words of a link, or the name of the file that it leads to."""
    marks = len(text[:opener]) - len(text[:opener].rstrip("!"))
    path = unquote(html.unescape(_ESCAPED.sub(r"\1", target["url"])))
    label = html.unescape(_MARKS.sub("", text[opener + 1 : closer]))
    if label.strip() != path and not all(map(is_invisible, label)):
        return [(opener - marks, opener + 1, ""), (closer, target.end(), "")]
    name = _ACTIVE.sub(" ", path.rstrip("/").rpartition("/")[2])
    return [(opener - marks, target.end(), name)]


def _host(url: str) -> str:
    """Return the host of a web address, or the beginning of another target."""
    try:
        host = split_url(url).hostname
    except ValueError:
        host = None
    return _UNUSUAL.sub("", host or url)[:_MAX_SHOWN_TARGET]


def _claimed_hosts(label: str) -> set[str]:
    """Return the hosts that the text of a link names."""
    shown = unicodedata.normalize("NFKC", html.unescape(_MARKS.sub("", label))).strip().lower()
    shown = shown.replace("\u3002", ".")
    address = _ADDRESS.fullmatch(shown)
    hosts = {*_CLAIMED_HOST.findall(shown), *([address[1]] if address else [])}
    return {host.removeprefix("www.") for host in hosts}

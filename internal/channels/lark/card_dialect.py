"""Markdown as models write it, in the form that cards show as meant. Pure.

A card nests lists by four blanks, shows headings of the first levels very large, and has no tasks,
footnotes, formulas, marked text or line breaks in cells. Source: reports of users of public bots.
"""

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from internal.channels.lark.formula_text import formula_text

_INDENT = 4
_NESTED_ITEM = re.compile(r"^[ \t]+(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)", re.MULTILINE)
_ITEM = re.compile(r"( *)([-*+]|[0-9]{1,9}[.)])( *)")
_LISTS = frozenset({"bullet_list", "ordered_list"})
_TOP_HEADING, _OTHER_HEADING = "####", "#####"
_HEADING_MARK = re.compile(r"#{1,6}(?=[ \t]|$)")
_TASK = re.compile(r"^([ \t>]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)\[([ xX])\](?=[ \t])", re.MULTILINE)
_FOOTNOTE_ID = r"\[\^([^\]\s^]{1,30})\]"
_FOOTNOTE = re.compile(rf"^([ \t>]*){_FOOTNOTE_ID}:[ \t]*", re.MULTILINE)
_FOOTNOTE_MARK = re.compile(rf"{_FOOTNOTE_ID}(?![(:\[])")
_BREAK = re.compile(r"[ \t]?<br[ \t]?/?>[ \t]?", re.IGNORECASE)
_MARKED = re.compile(r"(?<![\w=])==(?=[^\s=])([^=\n]+)(?<=[^\s=])==(?![\w=])", re.ASCII)
_MAX_FORMULA_CHARS = 500
_FORMULA = re.compile(
    rf"\$\$(?P<block>[^$]{{1,{_MAX_FORMULA_CHARS}}})\$\$"
    rf"|(?<!\S)\\\[(?P<brackets>(?:(?!\\\]).){{1,{_MAX_FORMULA_CHARS}}})\\\](?!\S)"
    rf"|\\\((?P<parentheses>(?:(?!\\\)).){{1,{_MAX_FORMULA_CHARS}}})\\\)"
    r"|(?<![A-Za-z0-9$\\])\$(?![\s$])(?P<line>(?:\\.|[^\\\n$])+?)(?<!\s)\$(?![A-Za-z0-9$])",
    re.DOTALL,
)
_IS_FORMULA = re.compile(r"[\\^_=+<>]|^[A-Za-z]\w?$|^[A-Za-z]\w?\([\w, ]+\)$")
"""Between single dollar signs, or brackets that may be escaped; others may be prices."""
_MARKUP = re.compile(r"([*_~`\[\]])")


def footnote_ids(text: str) -> frozenset[str]:
    """Return the ids of the footnotes that a text defines."""
    return frozenset(found[2] for found in _FOOTNOTE.finditer(text))


def adapt_text(text: str, footnotes: frozenset[str], *, in_cell: bool) -> str:
    """Return text of a paragraph or a cell that is no code, with as many line feeds as before."""
    if "[" in text:
        text = _TASK.sub(lambda found: f"{found[1]}{'☐' if found[2] == ' ' else '☑'}", text)
    if footnotes:
        text = _FOOTNOTE.sub(r"\1[\2] ", text)
        text = _FOOTNOTE_MARK.sub(
            lambda found: f"[{found[1]}]" if found[1] in footnotes else found[0], text
        )
    if in_cell and "<" in text:
        text = _BREAK.sub(" ", text)
    if "==" in text:
        text = _MARKED.sub(r"\1", text)
    if "$" in text or "\\" in text:
        text = _FORMULA.sub(_plain_formula, text)
    return text


def _plain_formula(found: re.Match[str]) -> str:
    tex = next(group for group in found.groups() if group is not None)
    if not tex.strip() or (found["block"] is None and not _IS_FORMULA.search(tex.strip())):
        return found[0]
    shown = formula_text(tex)
    if shown is not None:
        shown = _MARKUP.sub(r"\\\1", shown)
    elif "`" in tex:
        return found[0]
    else:
        shown = f"`{' '.join(tex.split())}`"
    return shown + "\n" * found[0].count("\n")


def adapt_headings(lines: list[str], tokens: Sequence[Token]) -> None:
    """Lower the headings to two levels: one for the highest level that occurs, one for the rest."""
    headings = [token for token in tokens if token.type == "heading_open" and token.map]
    top = min((token.tag for token in headings), default="")
    for token in headings:
        start, end = token.map or (0, 0)
        mark = _TOP_HEADING if token.tag == top else _OTHER_HEADING
        if token.markup.startswith("#"):
            lines[start] = _HEADING_MARK.sub(mark, lines[start], count=1)
        elif token.level == 0:  # underlined
            title = " ".join(line.strip() for line in lines[start : end - 1])
            lines[start:end] = [f"{mark} {title}", *[""] * (end - start - 1)]


def indent_lists(text: str, parser: MarkdownIt) -> str:
    """Return the text with four blanks for each level of a list; lists in quotes are kept."""
    if not _NESTED_ITEM.search(text):
        return text
    lines = text.split("\n")
    for node in SyntaxTreeNode(parser.parse(text)).children:
        if node.type in _LISTS:
            _place_items(lines, node, None)
    return "\n".join(lines)


def _place_items(lines: list[str], node: SyntaxTreeNode, target: int | None) -> None:
    for item in node.children:
        start, end = item.map or (0, 0)
        if target is not None:
            _shift(lines, range(start, end), target - _indent_of(lines[start]))
        marker = _ITEM.match(lines[start].expandtabs(_INDENT))
        if marker is None:
            continue
        inner = -(-(len(marker[1]) + len(marker[2]) + 1) // _INDENT) * _INDENT
        for child in item.children:
            first, after = child.map or (start, start)
            if first == start:
                continue
            if child.type in _LISTS:
                _place_items(lines, child, inner)
            else:
                _shift(lines, range(first, after), inner - _indent_of(lines[first]))


def _indent_of(line: str) -> int:
    line = line.expandtabs(_INDENT)
    return len(line) - len(line.lstrip(" "))


def _shift(lines: list[str], numbers: range, blanks: int) -> None:
    for number in numbers:
        if text := lines[number].lstrip(" \t"):
            lines[number] = " " * max(0, _indent_of(lines[number]) + blanks) + text

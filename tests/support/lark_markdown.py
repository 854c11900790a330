"""Markdown as shown by a Lark card: CommonMark with tables and inline HTML, as Lark documents."""

import html
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

_lark = MarkdownIt("commonmark", {"maxNesting": 200}).enable("table")
_plain = MarkdownIt("commonmark", {"html": False, "maxNesting": 200}).enable("table")
_plain.disable(["reference", "autolink"])


def shown_tags(text: str) -> list[str]:
    """Return the tags, images and automatic links that a card would render."""
    active = {"html_block", "html_inline", "image"}
    return [
        token.content
        for token in _walk(_lark.parse(text))
        if token.type in active or token.markup == "autolink"
    ]


def codes(text: str) -> list[str]:
    """Return the code that a card shows, in order."""
    return [token.content for token in _walk(_lark.parse(text)) if _is_code(token)]


def block_codes(text: str) -> list[str]:
    """Return the code blocks that a card shows, in order, without the last line feed."""
    return [
        token.content.removesuffix("\n") for token in _walk(_lark.parse(text)) if _is_block(token)
    ]


def written_blocks(text: str) -> list[str]:
    """Return the code blocks of Markdown in which tags and definitions of links mean nothing."""
    return [
        token.content.removesuffix("\n") for token in _walk(_plain.parse(text)) if _is_block(token)
    ]


def as_shown(text: str) -> str:
    """Return the visible text of a card."""
    parts = (token.content for token in _walk(_lark.parse(text)) if token.type != "inline")
    return html.unescape("".join(parts))


def _is_code(token: Token) -> bool:
    return _is_block(token) or token.type == "code_inline"


def _is_block(token: Token) -> bool:
    return token.type in {"fence", "code_block"}


def _walk(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _walk(token.children or [])

"""Removal of text pasted around keys and addresses. Standard library only: settings use it."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_MAX_LAYERS = 12
_BLANKS = " \t\r\n\v\f\xa0\u3000\u200b\u200c\u200d\u2060\ufeff"
"""White space and characters without width, which come with text from pages and chats."""
_QUOTES = "\"'`“”\u2018\u2019„«»「」"
_ENDS = ",;\uff0c\uff1b。"
# a bare NAME= needs a name in capitals that keys and addresses have: a key may contain "="
_ASSIGNMENT = re.compile(
    r"(?:(?:export|set|setx|setenv)\s+[A-Za-z_]\w*\s*[=\s]"
    r"|\$env:[A-Za-z_]\w*\s*="
    r"|[A-Z][A-Z0-9]*(?:_+[A-Z0-9]+)+\s*="
    r"|(?:llm\.)?(?:api[_-]?key|base[_-]?url|api[_-]?base|endpoint)\s*[=:])\s*(?=\S)",
    re.ASCII,
)
_HEADER = re.compile(
    r"(?:(?:-H|--header)\s+[\"']?)?(?:authorization|x-api-key|api-key|x-goog-api-key)\s*:\s*(?=\S)",
    re.IGNORECASE | re.ASCII,
)
_BEARER = re.compile(r"bearer\s+(?=\S)", re.IGNORECASE | re.ASCII)
_METHOD = re.compile(r"(?:curl|GET|POST)\s+(?=\S)", re.ASCII)


class Entered(NamedTuple):
    """A key or an address without the text around it. `removed` names that text, in its order."""

    value: str
    removed: tuple[str, ...] = ()

    def sentence(self, what: str) -> str:
        """Return a sentence about the removed text; "" if there was none."""
        if not self.removed:
            return ""
        *others, last = self.removed
        removed = f"{', '.join(others)} and {last}" if others else last
        return f"Left out around {what}: {removed}."


_Layers = Sequence[tuple[str, re.Pattern[str]]]
_KEY_LAYERS: _Layers = (
    ("the name of a variable", _ASSIGNMENT),
    ("the name of a header", _HEADER),
    ("“Bearer”", _BEARER),
)
_ADDRESS_LAYERS: _Layers = (("the name of a variable", _ASSIGNMENT), ("a command", _METHOD))


def clean_key(text: str) -> Entered:
    """Return a key without blanks, quotes, `Bearer`, `export NAME=` or a header's name around it.

    White space inside of a key stays, so that two words are still refused.
    """
    return _clean(text, _KEY_LAYERS)


def clean_address(text: str) -> Entered:
    """Return an address without blanks, quotes, angle brackets and `export NAME=` around it."""
    found = _clean(text, _ADDRESS_LAYERS)
    if len(found.value) > 1 and found.value[0] == "<" and found.value[-1] == ">":
        inner = _clean(found.value[1:-1], _ADDRESS_LAYERS)
        return Entered(inner.value, _distinct((*found.removed, "brackets", *inner.removed)))
    return found


def _clean(text: str, layers: _Layers) -> Entered:
    removed: list[str] = []
    for _ in range(_MAX_LAYERS):
        before, text = text, _peel(text, layers, removed)
        if text == before:
            break
    return Entered(text, _distinct(removed))


def _peel(text: str, layers: _Layers, removed: list[str]) -> str:
    """Return the text without its outermost layer."""
    bare = text.strip(_BLANKS)
    if bare != text:
        around = text[: len(text) - len(text.lstrip(_BLANKS))] + text[len(text.rstrip(_BLANKS)) :]
        removed.append("a line break" if "\n" in around or "\r" in around else "blanks")
        return bare
    for name, pattern in layers:
        if match := pattern.match(text):
            removed.append(name)
            return text[match.end() :]
    if text.strip(_QUOTES) != text:
        removed.append("quotes")
        return text.strip(_QUOTES)
    if text.rstrip(_ENDS) != text:
        removed.append("punctuation")
        return text.rstrip(_ENDS)
    return text


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))

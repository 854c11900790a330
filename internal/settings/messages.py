"""Error messages for settings. The value of a secret never appears in them."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import ErrorDetails

_MAX_MESSAGE_CHARACTERS = 400
_EXPECTED: Mapping[str, str] = {
    "bool": "true or false",
    "dict": "a mapping",
    "finite": "a finite number",
    "float": "a number",
    "int": "a whole number",
    "is": "a mapping",
    "mapping": "a mapping",
    "model": "a mapping",
    "path": "a path",
    "string": "text",
    "tuple": "a list",
}


def plain(text: str, longest: int = 60) -> str:
    """Escape unprintable characters and truncate, so that text can be printed on one line."""
    shown = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean server.port?` for a close match, else a full stop."""
    names = [one for one in known if not name.startswith(f"{one}.")]
    same_end = [one for one in names if one.rpartition(".")[2] == name]
    close = same_end or difflib.get_close_matches(name, names, n=1, cutoff=0.75)
    return f"; did you mean {close[0]}?" if close else "."


def complaint(error: ErrorDetails, *, show: bool) -> str:
    """Return the required and the given value, as text to follow the name of the key.

    With `show` false only the kind of the value is named.
    """
    family = error["type"].partition("_")[0]
    match error.get("ctx", {}):
        case {"error": own}:
            return f"{plain(str(own), _MAX_MESSAGE_CHARACTERS)}."
        case {"expected": choices}:
            expected = choices.replace("'", "")
        case {"ge": low}:
            expected = f"at least {low}"
        case {"gt": low}:
            expected = f"more than {low}"
        case {"le": high}:
            expected = f"at most {high}"
        case _ if family == "missing":
            return "is missing."
        case _:
            expected = _EXPECTED[family]
    return f"must be {expected}, not {name_of(error['input'], show=show)}."


def name_of(value: Any, *, show: bool) -> str:
    """Return a value for a sentence, or with `show` false its kind."""
    match value:
        case None:
            return "nothing"
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case bool():
            return "true" if value else "false"
        case str():
            return f"'{plain(value)}'" if show else "text"
        case _:
            return plain(str(value)) if show else "a number"

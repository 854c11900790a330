"""JSON with comments and trailing commas, as editors write their settings."""

import json
import re
from typing import Any

_TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<comma>,)(?=(?P<end>\s*[}\]]))',
    re.DOTALL,
)


def parse_relaxed(text: str) -> tuple[Any, bool]:
    """Return the value of a text, and True if it is plain JSON.

    Line numbers of errors refer to the original text.

    Raises:
        json.JSONDecodeError: it is not even JSON with comments and trailing commas.
        RecursionError: it is nested too deeply.
    """
    text = text.removeprefix("\ufeff")
    try:
        return json.loads(text), True
    except json.JSONDecodeError:
        # comments first: one may follow a comma
        without_comments = _TOKEN.sub(_without_comment, text)
        return json.loads(_TOKEN.sub(_without_comma, without_comments)), False


def _without_comment(found: re.Match[str]) -> str:
    if found["comment"] is None:
        return found[0]
    return "\n" * found[0].count("\n") or " "


def _without_comma(found: re.Match[str]) -> str:
    return found[0] if found["comma"] is None else " "

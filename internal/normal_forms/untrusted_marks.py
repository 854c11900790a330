"""Marks around texts of others, which instruct models how to treat them. Standard library only."""

import re

# the output of `mark_untrusted`; the page has the same expression
_MARKS = re.compile(
    r"^\[[0-9a-f]{16}: what follows came from .*\]\n|\n\[[0-9a-f]{16}: end\]$", re.MULTILINE
)


def without_marks(text: str) -> str:
    """Return a text as people read it, without the words for models around texts of others."""
    return _MARKS.sub("", text)

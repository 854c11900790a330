"""The named statements: read once from the `.sql` files beside this module."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "queries"
_NAMED = re.compile(r"^-- name: (\w+)\n(.+?;)$", re.MULTILINE | re.DOTALL)


@cache
def load() -> Mapping[str, str]:
    """Return every statement by its name.

    Raises:
        ValueError: two statements have one name.
    """
    queries: dict[str, str] = {}
    for file in sorted(_FOLDER.glob("*.sql")):
        for name, sql in parse(file.read_text(encoding="utf-8")).items():
            if name in queries:
                raise ValueError(f"{file.name}: there is another statement named {name}")
            queries[name] = sql
    return queries


def parse(text: str) -> dict[str, str]:
    """Return the statements of one file by name, without the closing semicolon.

    Raises:
        ValueError: two statements have one name, or one has no name.
    """
    found = _NAMED.findall(text)
    queries = {name: sql.removesuffix(";").rstrip() for name, sql in found}
    if not len(queries) == len(found) == len(re.findall(r";$", text, re.MULTILINE)):
        raise ValueError("every statement needs a name of its own and ends its line with ;")
    return queries

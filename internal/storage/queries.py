"""The named statements, read once from `queries/*.sql`."""

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
        ValueError: two statements have the same name.
    """
    queries: dict[str, str] = {}
    for file in sorted(_FOLDER.glob("*.sql")):
        for name, sql in parse(file.read_text(encoding="utf-8")).items():
            if name in queries:
                raise ValueError(f"{file.name}: another statement is named {name}")
            queries[name] = sql
    return queries


def parse(text: str) -> dict[str, str]:
    """Return the statements of one file by name, without the closing semicolon.

    Raises:
        ValueError: two statements have the same name, or one has none.
    """
    found = _NAMED.findall(text)
    queries = {name: sql.removesuffix(";").rstrip() for name, sql in found}
    if not len(queries) == len(found) == len(re.findall(r";$", text, re.MULTILINE)):
        raise ValueError("every statement needs a unique name and ends its line with a semicolon")
    return queries

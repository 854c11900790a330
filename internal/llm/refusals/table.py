"""Loads the tables of refusals. Nothing is read before the first refusal."""

import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import msgspec

from internal.agent.domain.errors import RefusalKind

REQUEST_STATUSES = frozenset({400, 404, 413, 415, 422, 424, 500, 501})
"""Of a request that cannot be taken as it is. Some servers answer with 500 where 400 is right."""


class TableRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """One row: the conditions for an answer, and the refusal. See the package."""

    kind: RefusalKind
    status: frozenset[int] = REQUEST_STATUSES
    code: frozenset[str] = frozenset()
    text: str = ""
    change: Mapping[str, Any] = {}

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled `text`."""
        return re.compile(self.text, re.IGNORECASE | re.DOTALL)

    @cached_property
    def codes(self) -> frozenset[str]:
        """The `code` values without regard to case."""
        return frozenset(code.casefold() for code in self.code)

    @property
    def level(self) -> int:
        """Precision of the row: 0 with code and text, 1 with a code, 2 with a text, else 3."""
        if self.code:
            return 0 if self.text else 1
        return 2 if self.text else 3


@lru_cache(1)
def load_tables() -> Mapping[str, Mapping[str, TableRow]]:
    """Return the rows by name, of each table by name, in the order of the files."""
    import tomllib  # noqa: PLC0415  # needed at the first refusal only

    tables = {}
    for file in sorted(Path(__file__).with_name("tables").glob("*.toml")):
        content = tomllib.loads(file.read_text("utf-8"))
        tables[file.stem] = msgspec.convert(content, dict[str, TableRow])
    return tables

"""The numbered migrations of each kind of database."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent / "migrations"


class Migration(NamedTuple):
    """A change to the schema version `number`. Its number is the same for every kind."""

    number: int
    name: str
    statements: tuple[str, ...]


@cache
def migrations(kind: str) -> tuple[Migration, ...]:
    """Return the migrations of a kind of database, such as `sqlite`, in order."""
    return tuple(_read(file) for file in sorted((_FOLDER / kind).glob("[0-9]*.sql")))


def newest_version(kind: str) -> int:
    """Return the schema version after all migrations of a kind of database."""
    return migrations(kind)[-1].number


def _read(file: Path) -> Migration:
    number, _, name = file.stem.partition("_")
    lines = file.read_text(encoding="utf-8").splitlines()
    sql = "\n".join(line for line in lines if not line.startswith("--"))
    statements = (statement.strip() for statement in sql.split(";\n"))
    return Migration(int(number), name, tuple(s.rstrip(";") for s in statements if s))

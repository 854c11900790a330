"""What is known of a database, and what was done with it, for those who run it."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple


class TableSize(NamedTuple):
    """A table, its rows, and its bytes with indexes; None if the database does not tell."""

    name: str
    rows: int
    size: int | None


class Pruned(NamedTuple):
    """How many rows or sessions of a kind are older than the settings allow, or were removed.

    `days` is the age in days from which they are too old.
    """

    kind: str
    days: int
    total: int


class DatabaseStatus(NamedTuple):
    """The state of a database. Sizes are bytes, times RFC 3339 or "" for none.

    Attributes:
        place: the file, or host and name, without a password.
        schema: the version of its schema; `supported` is that of this program.
        size: the whole database.
        unused: what `larkspur db vacuum` would give back, as far as that is known.
        wal_size: commits that are not in the file yet, 0 on PostgreSQL.
        runs: how many runs have each status.
        processes: the gateways and workers, and the owners of unfinished runs.
        old: what retention would remove now.
        note: why the database is not opened, such as that it was moved; "" if it is.
    """

    kind: Literal["sqlite", "postgresql"]
    place: str
    schema: int
    supported: int
    size: int
    unused: int
    wal_size: int
    tables: Sequence[TableSize]
    oldest_event: str
    newest_event: str
    runs: Mapping[str, int]
    processes: Sequence[str]
    old: Sequence[Pruned]
    note: str


class MoveResult(NamedTuple):
    """A finished move: from where to where, and how many rows.

    `was_finished`: it had been finished before, and nothing was copied now.
    """

    source: str
    target: str
    rows: int
    was_finished: bool

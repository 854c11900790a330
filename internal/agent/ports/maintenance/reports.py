"""Facts about a database, and the results of operations on it, for its operators."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple


class TableSize(NamedTuple):
    """A table, its rows, and its bytes with indexes; None if the database does not report it."""

    name: str
    rows: int
    size: int | None


class Pruned(NamedTuple):
    """The number of rows or sessions of a kind that are too old by the settings, or were removed.

    `days` is the age in days from which they are too old.
    """

    kind: str
    days: int
    total: int


class DatabaseStatus(NamedTuple):
    """The state of a database. Sizes are bytes, times RFC 3339, "" if unset.

    Attributes:
        place: the file, or host and name, without a password.
        schema: the version of its schema; `supported` is the version of this program.
        size: the whole database.
        unused: the space that `larkspur db vacuum` would give back, as far as known.
        wal_size: commits that are not in the file yet, 0 on PostgreSQL.
        runs: the number of runs with each status.
        processes: the gateways and workers, and the owners of unfinished runs.
        old: the rows that retention would remove now.
        note: the reason why the database is not opened, such as that it was moved; "" if it is.
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

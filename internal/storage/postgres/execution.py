"""Execution of a unit of work on a connection, in few round trips.

A statement that returns no rows waits for the next one that does, and both are sent as one:
`with set_task_status as (update …) select …`. To the server they are one statement, whose parts
all see the rows from before it. So two are only joined if the later one names no table that the
earlier one changes, and otherwise are executed in their order.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import asyncpg

from internal.agent.domain.secrets import mask_secrets_in_values
from internal.agent.store.database import Batch, Lookup, Row, SqlValue, Statement, Step
from internal.storage.pending_work import Work
from internal.storage.postgres import errors
from internal.storage.postgres.connection import Connection

_MAX_WAITING = 8  # the server's limit of time is for all that are joined
_CHANGE = re.compile(r"(?:insert into|update|delete from) (\w+)")
_WORD = re.compile(r"[a-z_]\w*")
_PARAMETER = re.compile(r"\$(\d+)")


class Traits(NamedTuple):
    """Properties that decide whether a statement can be joined to others.

    Attributes:
        changes: the table that it changes, "" if it changes none.
        words: all its words, including the names of the tables that it reads.
        can_wait: it returns no rows.
        can_lead: others may be put before it.
    """

    changes: str
    words: frozenset[str]
    can_wait: bool
    can_lead: bool

    def affects(self, later: "Traits") -> bool:
        """Return whether a later statement names the table that this one changes."""
        return self.changes in later.words


@cache
def find_traits(sql: str) -> Traits:
    """Return how a named statement can be joined to others."""
    words = frozenset(_WORD.findall(sql))
    change = _CHANGE.match(sql)
    table = "" if change is None else change[1]
    return Traits(table, words, bool(table) and "returning" not in words, "with" not in words)


@cache
def join(names: tuple[str, ...], statements: tuple[str, ...]) -> str:
    """Return statements as one: the last one, preceded by the others under their names.

    The parameters of the last one keep their numbers; the parameters of the others follow.
    """
    *others, last = statements
    used = _count_parameters(last)
    parts: list[str] = []
    for name, sql in zip(names, others, strict=False):  # the last one needs no name
        parts.append(f"{name} as ({_shift_parameters(sql, used)})")
        used += _count_parameters(sql)
    return f"with {', '.join(parts)} {last}" if parts else last


def _shift_parameters(sql: str, count: int) -> str:
    return _PARAMETER.sub(lambda found: f"${int(found[1]) + count}", sql)


def _count_parameters(sql: str) -> int:
    return max(map(int, _PARAMETER.findall(sql)), default=0)


async def execute(connection: Connection, queries: Mapping[str, str], work: Work) -> Any:
    """Execute the statements of a unit of work in the open transaction and return its result.

    Raises:
        StoreError, RequestError: a statement failed.
        ServerFailed: the server or the connection failed.
        Exception: any exception of the work.
    """
    generator = work()
    execution = _Execution(connection, queries)
    try:
        step = next(generator)
        while True:
            step = generator.send(await execution.execute(step))
    except StopIteration as end:
        await execution.flush()
        return end.value
    finally:
        generator.close()


class _Execution:
    """The execution of one unit of work, with the statements that wait for another one."""

    def __init__(self, connection: Connection, queries: Mapping[str, str]) -> None:
        self._connection = connection
        self._queries = queries
        self._waiting: list[tuple[Statement, Traits]] = []

    async def execute(self, step: Step) -> list[Row]:
        """Execute a step and return its rows, or let it wait."""
        traits = find_traits(self._queries[step.query])
        if self._waiting and self._must_flush(traits):
            await self.flush()
        if isinstance(step, Statement):
            if not traits.can_wait:
                return await self._execute_with_waiting(step)
            self._waiting.append((step, traits))
            if len(self._waiting) == _MAX_WAITING:
                await self.flush()
            return []
        return await self._call((step.query,), step)

    def _must_flush(self, traits: Traits) -> bool:
        return not traits.can_lead or any(waiting.affects(traits) for _, waiting in self._waiting)

    async def flush(self) -> None:
        """Execute the waiting statements."""
        if self._waiting:
            last, _ = self._waiting.pop()
            await self._execute_with_waiting(last)

    async def _execute_with_waiting(self, last: Statement) -> list[Row]:
        if not self._waiting:
            return await self._call((last.query,), last)
        waiting = [statement for statement, _ in self._waiting]
        self._waiting.clear()
        names = tuple(statement.query for statement in (*waiting, last))
        values = chain(last.arguments, *(statement.arguments for statement in waiting))
        return await self._call(names, Statement(last.query, tuple(values)))

    async def _call(self, names: tuple[str, ...], step: Step) -> list[Row]:
        sql = join(names, tuple(map(self._queries.__getitem__, names)))
        try:
            return await _send(self._connection, sql, step)
        except errors.DRIVER_ERRORS as error:
            is_closed = self._connection.is_closed()
            if errors.is_transient(error, is_closed=is_closed) or errors.is_environment(error):
                raise errors.ServerFailed(error) from error
            raise errors.statement_error(error, " + ".join(names)) from error


async def _send(connection: Connection, sql: str, step: Step) -> list[Row]:
    records: list[asyncpg.Record]
    if isinstance(step, Batch):
        await connection.executemany(sql, [_bind(values) for values in step.arguments])
        return []
    if isinstance(step, Lookup):
        records = await connection.fetchmany(sql, [_bind(values) for values in step.arguments])
    else:
        records = await connection.fetch(sql, *_bind(step.arguments))
    return [tuple(record) for record in records]


def _bind(values: Sequence[SqlValue]) -> list[SqlValue]:
    """Return the values of a statement, with every secret masked: nothing stored has one.

    PostgreSQL stores no NUL character in a text: U+FFFD takes its place.
    """
    return [
        value.replace("\0", "\ufffd") if isinstance(value, str) else value
        for value in mask_secrets_in_values(values)
    ]

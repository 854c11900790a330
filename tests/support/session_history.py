"""Sessions in memory: runs of chosen sizes are stored, and the history of the next run is read."""

import sqlite3
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, NamedTuple

from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.messages import Message, Text, ToolCall, ToolResult, user_message
from internal.agent.domain.react.history import History, HistoryRef
from internal.agent.store.history import (
    HistoryRead,
    MessageCache,
    SessionMessages,
    load_history,
    read_history,
)
from internal.agent.store.sessions import SessionStore
from internal.storage import queries
from internal.storage.migrations import migrations
from internal.storage.sqlite.image_references import add_migration_functions
from internal.storage.sqlite.writer import execute

SESSION = SessionId("session-1")


class RunShape(NamedTuple):
    """The sizes of a run, in characters; an answer of None is a run that was stopped.

    Each reply with calls has as many calls as the number in `replies`. With `steering`, a person
    adds a message after the first of them.
    """

    question: int = 100
    replies: Sequence[int] = ()
    result: int = 100
    answer: int | None = 100
    steering: bool = False


def run_messages(number: int, shape: RunShape, letter: str = "x") -> list[Message]:
    """Return the messages of a run. Every text begins and ends with its name."""
    messages = [user_message(named_text(f"question {number}", shape.question, letter))]
    for reply, count in enumerate(shape.replies):
        ids = [f"{number}-{reply}-{n}" for n in range(count)]
        calls = tuple(ToolCall(each, "read_file", {"path": each}) for each in ids)
        messages.append(Message("assistant", (Text("I look."), *calls)))
        results = (
            ToolResult(each, named_text(f"result {each}", shape.result, letter)) for each in ids
        )
        messages.append(Message("user", tuple(results)))
        if shape.steering and reply == 0:
            messages.append(user_message(named_text(f"steering {number}", 100, letter)))
    if shape.answer is not None:
        answer = named_text(f"answer {number}", shape.answer, letter)
        messages.append(Message("assistant", (Text(answer),)))
    return messages


def named_text(name: str, size: int, letter: str = "x") -> str:
    """Return a text of about `size` characters that begins and ends with its name."""
    return f"<{name}>{letter * size}</{name}>"


class StoredSession:
    """One session in a database in memory, with the tables and statements of the program."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        add_migration_functions(self._connection)
        for migration in migrations("sqlite"):
            for statement in migration.statements:
                self._connection.execute(statement)
        self._sessions = SessionStore()
        self.statements = 0
        self.rows_read = 0

    def add_run(self, number: int | str, messages: Sequence[Message]) -> None:
        run_id = RunId(f"run-{number}")
        self._execute(
            partial(self._sessions.add_messages, SESSION, run_id, messages, now="2026-11-22")
        )

    def clear(self) -> None:
        """Delete the messages of the session."""
        self._connection.execute("delete from messages")

    def read(self, budget: int, *, cache: MessageCache | None = None) -> History:
        """Return the history of the next run, as a process reads it that has this cache."""
        kept = MessageCache() if cache is None else cache
        found: HistoryRead = self._execute(partial(self._counted, budget, kept.get(SESSION)))
        kept.put(SESSION, found.known)
        return found.history

    def load(self, ref: HistoryRef) -> History:
        """Return the history that a reference stands for."""
        work = partial(load_history, self._sessions, SESSION, ref)
        history: History = self._execute(work)
        return history

    def close(self) -> None:
        self._connection.close()

    def _execute(self, work: Callable[[], Generator[Any, Any, Any]]) -> Any:
        return execute(self._connection, queries.load(), work)

    def _counted(self, budget: int, known: SessionMessages) -> Generator[Any, Any, HistoryRead]:
        work = read_history(self._sessions, SESSION, budget, known=known)
        statement = next(work)
        self.statements = self.rows_read = 0
        while True:
            rows = yield statement
            self.statements, self.rows_read = self.statements + 1, self.rows_read + len(rows)
            try:
                statement = work.send(rows)
            except StopIteration as end:
                found: HistoryRead = end.value
                return found

"""The stored walk of a workspace, the kept contents and the changes of runs.

Each workspace has a database of its own in one folder of Larkspur's home, so that a walk of one
waits for no other. A file for each session that worked in it leads from the session to it.
"""

import hashlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from internal.agent.domain.errors import StoreUnavailable
from internal.workspace_changes.contents import WatchedFileState

MAX_CHANGES_OF_RUN = 20_000
"""Changed files of one run that are kept; further ones are counted."""
_BUSY_SECONDS = 60.0
_MAX_HELD_BYTES = 8_000_000
"""Contents that are held in memory until they are stored together."""
_VERSION = 1
_KEY_DIGITS = 32
_SCHEMA = """
CREATE TABLE workspace (
  root BLOB NOT NULL, is_complete INTEGER NOT NULL, walked_ns INTEGER NOT NULL,
  inode INTEGER NOT NULL
);
CREATE TABLE files (
  path BLOB PRIMARY KEY, kind TEXT NOT NULL, content TEXT NOT NULL, size INTEGER NOT NULL,
  mode INTEGER NOT NULL, identity TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE contents (hash TEXT PRIMARY KEY, size INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE runs (
  run_id TEXT PRIMARY KEY, session_id TEXT NOT NULL, is_open INTEGER NOT NULL,
  omitted INTEGER NOT NULL DEFAULT 0, is_complete INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE changes (
  id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, path BLOB NOT NULL,
  before_kind TEXT NOT NULL, before_content TEXT NOT NULL, before_size INTEGER NOT NULL,
  before_mode INTEGER NOT NULL, after_kind TEXT NOT NULL, after_content TEXT NOT NULL,
  after_size INTEGER NOT NULL, after_mode INTEGER NOT NULL, after_identity TEXT NOT NULL,
  added INTEGER, removed INTEGER, is_undone INTEGER NOT NULL DEFAULT 0, UNIQUE (run_id, path)
);
CREATE INDEX runs_of_session ON runs (session_id);
"""
_CHANGE = (
    "c.id, r.session_id, c.run_id, c.path, c.before_kind, c.before_content, c.before_size,"
    " c.before_mode, c.after_kind, c.after_content, c.after_size, c.after_mode, c.after_identity,"
    " c.added, c.removed, c.is_undone"
)


class ChangeRecord(NamedTuple):
    """A change of a file by a run: its states before the run and after it.

    `added` and `removed` are lines, None where they are not known.
    """

    id: int
    session_id: str
    run_id: str
    path: str
    before: WatchedFileState
    after: WatchedFileState
    added: int | None
    removed: int | None
    is_undone: bool


class StoredRun(NamedTuple):
    """A run that changed files; `omitted` counts changes beyond `MAX_CHANGES_OF_RUN`."""

    run_id: str
    is_open: bool
    omitted: int
    is_complete: bool


class ChangeFolder:
    """The folder with the databases of workspaces. The methods block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @staticmethod
    def key(root: str) -> str:
        """Return the name by which a workspace is known."""
        return hashlib.sha256(os.fsencode(root)).hexdigest()[:_KEY_DIGITS]

    @contextmanager
    def open(self, root: str, *, for_reading: bool = False) -> Iterator["WorkspaceRecords"]:
        """Open the records of a workspace in one transaction, which no other process shares.

        `for_reading` does not wait for a transaction that writes.

        Raises:
            StoreUnavailable: they cannot be read or written.
        """
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._folder / f"{self.key(root)}.sqlite"
            with closing(sqlite3.connect(path, _BUSY_SECONDS, isolation_level=None)) as connection:
                connection.execute("PRAGMA page_size = 16384")
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("BEGIN" if for_reading else "BEGIN IMMEDIATE")
                try:
                    _create(connection, root)
                    records = WorkspaceRecords(connection)
                    yield records
                    records.store_held()
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise StoreUnavailable(
                f"The changes of a workspace cannot be stored: {error}"
            ) from error

    def exists(self, root: str) -> bool:
        """Return whether anything is recorded of a workspace."""
        return (self._folder / f"{self.key(root)}.sqlite").exists()

    def add_session(self, session_id: str, root: str) -> None:
        """Note that a session worked in a workspace.

        Raises:
            StoreUnavailable: it cannot be written.
        """
        folder = self._folder / "sessions" / session_id
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / self.key(root)).write_bytes(os.fsencode(root))
        except OSError as error:
            raise StoreUnavailable(f"The changes of a session cannot be stored: {error}") from error

    def roots_of(self, session_id: str) -> list[str]:
        """Return the workspaces in which a session worked."""
        try:
            found = sorted((self._folder / "sessions" / session_id).iterdir())
            return [os.fsdecode(each.read_bytes()) for each in found]
        except OSError:
            return []

    def remove_session(self, session_id: str) -> None:
        """Remove the changes of a session, and a workspace without other records.

        Raises:
            StoreUnavailable: they cannot be removed.
        """
        folder = self._folder / "sessions" / session_id
        for root in self.roots_of(session_id):
            if self.exists(root):
                with self.open(root) as records:
                    is_empty = records.remove_session(session_id)
                if is_empty:
                    for end in ("", "-wal", "-shm"):
                        (self._folder / f"{self.key(root)}.sqlite{end}").unlink(missing_ok=True)
            (folder / self.key(root)).unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()


class WorkspaceRecords:
    """The records of one workspace, within a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._held: dict[str, bytes] = {}
        self._held_bytes = 0

    def root(self) -> str:
        """Return the path of the workspace."""
        row = self._connection.execute("SELECT root FROM workspace").fetchone()
        return os.fsdecode(row[0])

    def last_walk(self) -> tuple[bool, int]:
        """Return whether the last walk was complete, and when it began, in ns since 1970; or 0."""
        row = self._connection.execute("SELECT is_complete, walked_ns FROM workspace").fetchone()
        return bool(row[0]), int(row[1])

    def inode(self) -> int:
        """Return the inode of the folder that was walked last, 0 before the first walk."""
        row = self._connection.execute("SELECT inode FROM workspace").fetchone()
        return int(row[0])

    def set_walk(self, *, is_complete: bool, walked_ns: int, inode: int) -> None:
        """Store when the last walk began, and which folder it walked."""
        self._connection.execute(
            "UPDATE workspace SET is_complete = ?, walked_ns = ?, inode = ?",
            (int(is_complete), walked_ns, inode),
        )

    def forget_files(self) -> None:
        """Remove the files of the last walk: the workspace is another folder now."""
        self._connection.execute("DELETE FROM files")

    def files(self) -> dict[str, WatchedFileState]:
        """Return the files of the last walk by path."""
        rows = self._connection.execute(
            "SELECT path, kind, content, size, mode, identity FROM files"
        )
        return {os.fsdecode(path): WatchedFileState(*state) for path, *state in rows}

    def save_files(self, states: dict[str, WatchedFileState], gone: list[str]) -> None:
        """Store the states of files, and remove files that are gone."""
        self._connection.executemany(
            "DELETE FROM files WHERE path = ?", ((os.fsencode(path),) for path in gone)
        )
        self._connection.executemany(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)",
            ((os.fsencode(path), *state) for path, state in states.items()),
        )

    def kept_bytes(self) -> int:
        """Return the bytes of all kept contents, before compression."""
        row = self._connection.execute("SELECT coalesce(sum(size), 0) FROM contents").fetchone()
        return int(row[0])

    def keep(self, name: str, content: bytes) -> None:
        """Keep a content under its hash."""
        # one by one costs more than reading the file; compressing them costs three times as much
        self._held[name] = content
        self._held_bytes += len(content)
        if self._held_bytes > _MAX_HELD_BYTES:
            self.store_held()

    def store_held(self) -> None:
        """Store the contents that are held in memory."""
        rows = ((name, len(content), content) for name, content in self._held.items())
        self._connection.executemany("INSERT OR IGNORE INTO contents VALUES (?, ?, ?)", rows)
        self._held, self._held_bytes = {}, 0

    def content(self, name: str) -> bytes | None:
        """Return a kept content, None if it is not kept."""
        if name in self._held:
            return self._held[name]
        found = self._connection.execute("SELECT data FROM contents WHERE hash = ?", (name,))
        row = found.fetchone()
        return None if row is None else bytes(row[0])

    def remove_unused_contents(self) -> None:
        """Remove the contents that neither a file nor a change has."""
        self.store_held()
        self._connection.execute(
            "DELETE FROM contents WHERE hash NOT IN (SELECT content FROM files UNION"
            " SELECT before_content FROM changes UNION SELECT after_content FROM changes)"
        )

    def open_run(self, run_id: str, session_id: str) -> None:
        """Record that the changes from now on also belong to a run."""
        self._connection.execute(
            "INSERT INTO runs (run_id, session_id, is_open) VALUES (?, ?, 1)"
            " ON CONFLICT (run_id) DO UPDATE SET is_open = 1",
            (run_id, session_id),
        )

    def close_run(self, run_id: str) -> None:
        """Record that later changes do not belong to a run."""
        self._connection.execute("UPDATE runs SET is_open = 0 WHERE run_id = ?", (run_id,))

    def note_limits(self, run_id: str, *, omitted: int, is_complete: bool) -> None:
        """Record the omissions of a walk of a run."""
        self._connection.execute(
            "UPDATE runs SET omitted = omitted + ?, is_complete = is_complete AND ?"
            " WHERE run_id = ?",
            (omitted, int(is_complete), run_id),
        )

    def open_runs(self) -> list[str]:
        """Return the runs whose changes are recorded now."""
        return [row[0] for row in self._connection.execute("SELECT run_id FROM runs WHERE is_open")]

    def run(self, run_id: str) -> StoredRun | None:
        """Return a run, None if it is not known."""
        row = self._connection.execute(
            "SELECT run_id, is_open, omitted, is_complete FROM runs WHERE run_id = ?", (run_id,)
        ).fetchone()
        return None if row is None else StoredRun(row[0], bool(row[1]), row[2], bool(row[3]))

    def changes_of_run(self, run_id: str) -> list[ChangeRecord]:
        """Return the changes of a run in the order of their paths."""
        return self._changes("WHERE c.run_id = ? ORDER BY c.path", run_id)

    def changes_of_session(self, session_id: str) -> list[ChangeRecord]:
        """Return the newest change of each file by runs of a session, in the order of paths."""
        return self._changes(
            "WHERE c.id IN (SELECT max(c.id) FROM changes AS c JOIN runs AS r USING (run_id)"
            " WHERE r.session_id = ? GROUP BY c.path) ORDER BY c.path",
            session_id,
        )

    def change(self, session_id: str, number: int) -> ChangeRecord | None:
        """Return a change of a session, None if there is none."""
        found = self._changes("WHERE r.session_id = ? AND c.id = ?", session_id, number)
        return found[0] if found else None

    def _changes(self, condition: str, *values: object) -> list[ChangeRecord]:
        rows = self._connection.execute(
            f"SELECT {_CHANGE} FROM changes AS c JOIN runs AS r USING (run_id) {condition}",  # noqa: S608 - constants
            values,
        )
        return [_record(row) for row in rows]

    def save_changes(
        self, run_id: str, changes: dict[str, tuple[WatchedFileState, WatchedFileState]]
    ) -> int:
        """Store the changes since the last walk as changes of a run.

        The state before a run is kept as first recorded. Returns the number of changes that are not
        stored, because the run has too many.
        """
        known = {each.path: each for each in self.changes_of_run(run_id)}
        count, omitted = len(known), 0
        for path, (before, after) in changes.items():
            earlier = known.get(path)
            first = before if earlier is None else earlier.before
            if earlier is None and count >= MAX_CHANGES_OF_RUN:
                omitted += 1
                continue
            count += earlier is None
            if is_same(first, after):
                self._connection.execute(
                    "DELETE FROM changes WHERE run_id = ? AND path = ?",
                    (run_id, os.fsencode(path)),
                )
                count -= 1
                continue
            # a new id, so that the newest change of a file is the one with the greatest id
            self._connection.execute(
                "INSERT OR REPLACE INTO changes (run_id, path, before_kind, before_content,"
                " before_size, before_mode, after_kind, after_content, after_size, after_mode,"
                " after_identity) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (run_id, os.fsencode(path), *first[:4], *after),
            )
        return omitted

    def set_lines(self, number: int, added: int, removed: int) -> None:
        """Store the lines of a change."""
        values = (added, removed, number)
        self._connection.execute("UPDATE changes SET added = ?, removed = ? WHERE id = ?", values)

    def set_undone(self, number: int) -> None:
        """Record that a change was undone."""
        self._connection.execute("UPDATE changes SET is_undone = 1 WHERE id = ?", (number,))

    def remove_session(self, session_id: str) -> bool:
        """Remove the changes of a session; return True if no run is left."""
        self._connection.execute(
            "DELETE FROM changes WHERE run_id IN (SELECT run_id FROM runs WHERE session_id = ?)",
            (session_id,),
        )
        self._connection.execute("DELETE FROM runs WHERE session_id = ?", (session_id,))
        self.remove_unused_contents()
        return self._connection.execute("SELECT 1 FROM runs").fetchone() is None


def is_same(before: WatchedFileState, after: WatchedFileState) -> bool:
    """Return True if two states of a file are equal as far as is known."""
    if before.kind != after.kind:
        return False
    if not before.kind:
        return True
    if before.kind == "file" and before.mode != after.mode:
        return False
    if before.content and after.content:
        return before.content == after.content
    return before.size == after.size and _without_ctime(before) == _without_ctime(after) != ""


def _without_ctime(state: WatchedFileState) -> str:
    return state.identity.rpartition(":")[0]


def _create(connection: sqlite3.Connection, root: str) -> None:
    if connection.execute("PRAGMA user_version").fetchone()[0] == _VERSION:
        return
    for statement in _SCHEMA.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute("INSERT INTO workspace VALUES (?, 1, 0, 0)", (os.fsencode(root),))
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def _record(row: Sequence[Any]) -> ChangeRecord:
    return ChangeRecord(
        id=row[0],
        session_id=row[1],
        run_id=row[2],
        path=os.fsdecode(row[3]),
        before=WatchedFileState(*row[4:8]),
        after=WatchedFileState(*row[8:13]),
        added=row[13],
        removed=row[14],
        is_undone=bool(row[15]),
    )

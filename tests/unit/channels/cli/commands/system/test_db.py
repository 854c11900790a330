"""`larkspur db`."""

import json
from pathlib import Path

import pytest

from internal.agent.domain.errors import (
    Conflict,
    InvalidRequest,
    StoreCorrupt,
    StoreUnavailable,
)
from internal.channels.cli.exit_codes import CONFIG, OK, USAGE
from internal.storage.migrations import migrations, newest_version
from internal.storage.sqlite.file_check import APPLICATION_ID
from tests.support.command_runner import CommandRunner
from tests.support.database_files import execute, query

NEWEST = newest_version("sqlite")
MIGRATIONS = migrations("sqlite")
OLD = "2026-01-01T00:00:00.000Z"


@pytest.fixture
def database(run: CommandRunner, home: Path) -> Path:
    """The database after one task."""
    run.ask("what is 2+2?")
    return home / "larkspur.db"


def test_the_status_shows_sizes_rows_runs_and_what_is_old(
    run: CommandRunner, database: Path
) -> None:
    execute(database, f"update inbox set status = 'handled', received = '{OLD}'")  # noqa: S608 - a constant
    shown = run("db", "--json").json
    assert (shown["kind"], shown["place"]) == ("sqlite", f"sqlite:///{database}")
    assert shown["schema"] == shown["supported"] == NEWEST
    assert shown["size"] >= 4096
    rows = {table["name"]: table["rows"] for table in shown["tables"]}
    assert (rows["sessions"], rows["runs"], rows["processes"]) == (1, 1, 0)
    assert shown["runs"] == {"completed": 1}
    assert shown["oldest_event"] < shown["newest_event"]
    assert {each["kind"]: each["total"] for each in shown["old"]} == {"inbox": 1, "outbox": 0}
    text = run("db", "status").out
    assert f"schema    {NEWEST}\n" in text
    assert "runs      1 completed\n" in text
    assert "larkspur db prune removes what is old" in text


def test_the_status_needs_a_database(run: CommandRunner, home: Path) -> None:
    with pytest.raises(StoreUnavailable, match="There is no database"):
        run("db")
    assert not (home / "larkspur.db").exists()


def test_an_older_schema_is_shown_and_migrated(run: CommandRunner, home: Path) -> None:
    first, later = MIGRATIONS[0], MIGRATIONS[1:]
    execute(
        home / "larkspur.db",
        *first.statements,
        "insert into schema_migrations values (1, 'initial', 'now')",
        f"pragma application_id = {APPLICATION_ID}",
        "pragma user_version = 1",
    )
    assert f"1 (this version has {NEWEST}: larkspur db migrate)" in run("db").out
    checked = run("db", "migrate", "--check")
    assert (checked.code, "Pending: 0002 usage_of_people, " in checked.out) == (CONFIG, True)
    applied = run("db", "migrate")
    assert applied.err.splitlines() == [f"applied {each.number:04} {each.name}" for each in later]
    assert applied.out == f"{len(later)} migrations were applied.\n"
    assert run("db", "migrate").out == "No migration is pending.\n"
    assert run("db", "migrate", "--check").code == OK


def test_a_backup_and_an_export_are_new_private_files(
    run: CommandRunner, database: Path, tmp_path: Path
) -> None:
    backup, export = tmp_path / "backup.db", tmp_path / "rows.jsonl"
    assert "is a checked copy" in run("db", "backup", str(backup)).out
    assert query(backup, "select count(*) from runs") == query(
        database, "select count(*) from runs"
    )
    assert run("db", "export", str(export)).code == OK
    header, *rows = map(json.loads, export.read_text().splitlines())
    assert (header["schema"], len(rows) > 20) == (NEWEST, True)
    for file in (backup, export):
        assert file.stat().st_mode & 0o777 == 0o600
        with pytest.raises(Conflict, match="exists and was not changed"):
            run("db", "backup", str(file))


def test_what_is_old_is_counted_and_removed(run: CommandRunner, database: Path) -> None:
    execute(database, f"update inbox set status = 'handled', received = '{OLD}'")  # noqa: S608 - a constant
    shown = run("db", "prune", "--dry-run")
    assert shown.out.endswith("Nothing was removed (--dry-run).\n")
    assert query(database, "select count(*) from inbox") == [(1,)]
    removed = run("db", "prune", "--json").json
    assert {each["kind"]: each["total"] for each in removed} == {"inbox": 1, "outbox": 0}
    assert query(database, "select count(*) from inbox") == [(0,)]


def test_a_session_whose_events_were_removed_is_still_shown(
    run: CommandRunner, database: Path, home: Path
) -> None:
    execute(database, f"update events set ts = '{OLD}'")  # noqa: S608 - a constant
    (home / "config.yaml").write_text("retention: {events_days: 30}\n")
    run("db", "prune")
    assert query(database, "select count(*) from events") == [(0,)]
    (session,) = run.local("sessions", "--json").json
    shown = run.local("sessions", "show", session["session_id"])
    assert "> what is 2+2?" in shown.out
    assert "2+2 = 4" in shown.out


def test_sessions_are_removed_with_their_workspaces(
    run: CommandRunner, database: Path, home: Path
) -> None:
    execute(database, f"update sessions set updated = '{OLD}'")  # noqa: S608 - a constant
    (home / "config.yaml").write_text("retention: {one_shot_days: 90}\n")
    assert "one_shot_sessions" in run("db", "prune").out
    assert run.local("sessions", "--json").json == []
    assert "session.deleted" in run.local("audit").out


def test_a_move_says_how_to_use_the_new_database(
    run: CommandRunner, database: Path, home: Path, tmp_path: Path
) -> None:
    target = f"sqlite:///{tmp_path}/new.db"
    moved = run("db", "move", "--to", target)
    assert f"to {target}" in moved.out
    assert "Now set database.url" in moved.out
    assert "events: " in moved.err
    with pytest.raises(StoreCorrupt, match=f"was moved to {target}"):
        run.local("sessions")
    assert f"was moved to {target}" in run("db").out
    (home / "config.yaml").write_text(f"database: {{url: {target}}}\n")
    assert len(run.local("sessions", "--json").json) == 1
    with pytest.raises(InvalidRequest, match="is the database of the settings already"):
        run("db", "move", "--to", target)
    (home / "config.yaml").unlink()
    assert run("db", "move", "--cancel").out == "The database can be used again.\n"
    assert run("db", "move", "--cancel").out == "The database was not moved.\n"
    assert len(run.local("sessions", "--json").json) == 1


def test_space_is_given_back(run: CommandRunner, database: Path) -> None:
    assert "were given back" in run("db", "vacuum").out


@pytest.mark.parametrize(
    "words",
    [
        ("backup",),
        ("export",),
        ("status", "file"),
        ("vacuum", "--check"),
        ("migrate", "--dry-run"),
        ("move",),
        ("move", "--cancel", "--to", "sqlite:////a"),
        ("prune", "--to", "sqlite:////a"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(run: CommandRunner, words: tuple[str, ...]) -> None:
    refused = run("db", *words)
    assert (refused.code, refused.message.startswith("Usage: larkspur db")) == (USAGE, True)

"""Runs the clients and servers of others, stores what came out, and writes the table.

`python -m tests.compatibility [ONLY …]`, or `make compatibility`. The exit code is 1 if a row is
worse than it was.
"""
# ruff: noqa: T201 - a program that reports

import argparse
import asyncio
import datetime as dt
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from tests.compatibility import results, table
from tests.compatibility.clients_run import run_client
from tests.compatibility.declarations import Declaration, declarations
from tests.compatibility.place import Place, place
from tests.compatibility.server_declarations import ServerDeclaration, server_declarations
from tests.compatibility.servers_run import run_server
from tests.compatibility.verdicts import RANKS

CACHE = Path("~/.cache/larkspur-compatibility").expanduser()


def selected(name: str, only: list[str]) -> bool:
    """Say whether a row is to be run: `only` holds parts of names, and nothing means all."""
    return not only or any(part.lower() in name.lower() for part in only)


async def run_clients(only: list[str], cache: Path, folder: Path) -> dict[str, results.Row]:
    chosen = [each for each in declarations() if selected(each.name, only)]
    rows: dict[str, results.Row] = {}
    if not chosen:
        return rows
    async with AsyncExitStack() as stack:
        where: Place | None = None
        deliveries = folder / "deliveries.json"
        for each in chosen:
            if where is None and not each.untried:
                where = await stack.enter_async_context(place(folder / "clients"))
            row = await _client_row(each, where, cache, deliveries)
            rows[each.name] = row
            _tell(each.name, row)
    return rows


async def _client_row(
    declared: Declaration, where: Place | None, cache: Path, deliveries: Path
) -> results.Row:
    row: dict[str, Any] = {
        "client": declared.client,
        "door": declared.door,
        "language": declared.language,
        "packages": list(declared.packages),
        "registry": declared.registry,
        "remark": declared.remark,
    }
    if declared.untried:
        return {**row, "verdict": "not tried", "notes": [declared.untried], "passed": []}
    assert where is not None
    judged = await run_client(declared, where, cache, deliveries)
    return {
        **row,
        "date": _today(),
        "verdict": judged.verdict,
        "notes": list(judged.notes),
        "passed": list(judged.passed),
        "absent": list(judged.absent),
    }


async def run_servers(only: list[str], cache: Path, folder: Path) -> dict[str, results.Row]:
    rows: dict[str, results.Row] = {}
    for each in server_declarations():
        if selected(f"{each.name} server", only):
            row = await _server_row(each, cache, folder)
            rows[each.name] = row
            _tell(each.name, row)
    return rows


async def _server_row(declared: ServerDeclaration, cache: Path, folder: Path) -> results.Row:
    row: results.Row = {"name": declared.name, "command": declared.command}
    if declared.untried:
        return {**row, "verdict": "not tried", "notes": [declared.untried]}
    return {**row, "date": _today(), **await run_server(declared, cache, folder)}


def _today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()


def _tell(name: str, row: results.Row) -> None:
    print(f"{name}: {row['verdict']}", *row["notes"], sep="\n  ", flush=True)


def worse(before: dict[str, results.Row], now: dict[str, results.Row]) -> list[str]:
    """Return the names of rows whose verdict is worse than it was."""
    return [
        name
        for name, row in now.items()
        if name in before and RANKS.index(row["verdict"]) > RANKS.index(before[name]["verdict"])
    ]


async def main(only: list[str], cache: Path, kinds: set[str]) -> int:
    """Run what is selected; return the exit code."""
    before = results.read()
    found: dict[str, dict[str, results.Row]] = {"clients": {}, "servers": {}}
    with tempfile.TemporaryDirectory() as name:
        if "clients" in kinds:
            found["clients"] = await run_clients(only, cache, Path(name))
        if "servers" in kinds:
            found["servers"] = await run_servers(only, cache, Path(name))
    after = {kind: {**before[kind], **found[kind]} for kind in before}
    names = {
        "clients": {each.name for each in declarations()},
        "servers": {each.name for each in server_declarations()},
    }
    after = {
        kind: {name: row for name, row in rows.items() if name in names[kind]}
        for kind, rows in after.items()
    }
    results.write(after)
    table.write(after)
    lost = [name for kind in found for name in worse(before[kind], found[kind])]
    if lost:
        print("Worse than before: " + ", ".join(lost))
    return int(bool(lost))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("only", nargs="*", help="parts of names of rows")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of installed programs")
    parser.add_argument("--kind", choices=["clients", "servers"], help="one of the two tables")
    given = parser.parse_args()
    kinds = {given.kind} if given.kind else {"clients", "servers"}
    sys.exit(asyncio.run(main(given.only, given.cache, kinds)))

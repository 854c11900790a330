"""Runs third-party clients and servers, stores the results, and writes the table.

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


class Run:
    """A run of selected programs; rows are stored one by one."""

    def __init__(self, only: list[str], cache: Path, folder: Path) -> None:
        self.cache, self.folder = cache, folder
        self.before = results.read()
        self.found: dict[str, dict[str, results.Row]] = {"clients": {}, "servers": {}}
        self._only = only

    def selects(self, name: str) -> bool:
        """Say whether a row is to be run: `only` holds parts of names, and nothing means all."""
        return not self._only or any(part.lower() in name.lower() for part in self._only)

    def store(self, kind: str, name: str, row: results.Row) -> None:
        """Store a row, and write the tables of all declared programs."""
        self.found[kind][name] = row
        print(f"{name}: {row['verdict']}", *row["notes"], sep="\n  ", flush=True)
        declared = {
            "clients": {each.name for each in declarations()},
            "servers": {each.name for each in server_declarations()},
        }
        rows = {
            each: {
                name: row
                for name, row in {**old, **self.found[each]}.items()
                if name in declared[each]
            }
            for each, old in results.read().items()
        }
        results.write(rows)
        table.write(rows)

    def worse(self) -> list[str]:
        """Return the names of rows with a worse verdict than before."""
        return [
            name
            for kind, rows in self.found.items()
            for name, row in rows.items()
            if (old := self.before[kind].get(name))
            and RANKS.index(row["verdict"]) > RANKS.index(old["verdict"])
        ]


async def run_clients(run: Run) -> None:
    chosen = [each for each in declarations() if run.selects(each.name)]
    async with AsyncExitStack() as stack:
        where: Place | None = None
        for each in chosen:
            if where is None and not each.untried:
                where = await stack.enter_async_context(place(run.folder / "clients"))
            row = await _client_row(each, where, run.cache, run.folder / "deliveries.json")
            run.store("clients", each.name, row)


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


async def run_servers(run: Run) -> None:
    for each in server_declarations():
        if run.selects(f"{each.name} server"):
            run.store("servers", each.name, await _server_row(each, run.folder))


async def _server_row(declared: ServerDeclaration, folder: Path) -> results.Row:
    row: results.Row = {"name": declared.name, "command": declared.command}
    if declared.untried:
        return {**row, "verdict": "not tried", "notes": [declared.untried]}
    return {**row, "date": _today(), **await run_server(declared, folder)}


def _today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()


async def main(only: list[str], cache: Path, kinds: set[str]) -> int:
    """Run the selected programs; return the exit code."""
    with tempfile.TemporaryDirectory() as name:
        run = Run(only, cache, Path(name))
        if "clients" in kinds:
            await run_clients(run)
        if "servers" in kinds:
            await run_servers(run)
    if lost := run.worse():
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

"""The export of every kind of database."""

import io
import json
import tracemalloc

import msgspec
import pytest

from internal.storage.maintenance.interface import DatabaseMaintenance
from internal.storage.maintenance.json_lines import FORMAT, _json_value, export_rows
from tests.support.database_rows import all_rows, fill_tables, moved_tables

EXPORTED = "2026-11-25T20:00:00.000Z"


async def test_every_row_is_exported_in_a_stable_order(maintenance: DatabaseMaintenance) -> None:
    async with maintenance.target() as tables:
        await fill_tables(tables, 600)
    files, written = [io.BytesIO(), io.BytesIO()], 0
    for file in files:
        async with maintenance.snapshot() as tables:
            written = await export_rows(tables, file, EXPORTED)
    assert files[0].getvalue() == files[1].getvalue()

    header, *lines = map(json.loads, files[0].getvalue().splitlines())
    assert (header["format"], header["exported"]) == (FORMAT, EXPORTED)
    assert header["schema"] == maintenance.newest_version
    assert len(lines) == written
    async with maintenance.snapshot() as tables:
        for table in await moved_tables(tables):
            columns = [column.name for column in table.columns]
            assert header["tables"][table.name] == columns
            rows = [tuple(line["row"]) for line in lines if line["table"] == table.name]
            assert rows == await all_rows(tables, table)
    assert list(header["tables"]) == sorted(header["tables"])


@pytest.mark.slow
async def test_the_memory_does_not_depend_on_the_number_of_rows(
    maintenance: DatabaseMaintenance,
) -> None:
    class NoFile(io.BytesIO):
        def write(self, data: object, /) -> int:
            return len(msgspec.convert(data, bytes))

    peaks = []
    for rows in (1_000, 4_000):
        async with maintenance.target() as tables:
            for table in await moved_tables(tables):
                await tables.fetch(f"delete from {table.name}")  # noqa: S608 - of the schema
            await fill_tables(tables, rows)
        async with maintenance.snapshot() as tables:
            tracemalloc.start()
            await export_rows(tables, NoFile(), EXPORTED)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


@pytest.mark.parametrize(
    ("value", "shown"), [(b"\0\xff", {"base64": "AP8="}), ("a", "a"), (1, 1), (None, None)]
)
def test_bytes_are_shown_in_base64(value: bytes | str | int | None, shown: object) -> None:
    assert _json_value(value) == shown

"""The export of a database as JSON Lines: a header, then every row of every table."""

import base64
from typing import IO, Any

import msgspec

from internal.agent.store.database import SqlValue
from internal.storage.maintenance.tables import Table, TableConnection

FORMAT = "larkspur-export-1"

_encoder = msgspec.json.Encoder()


async def export_rows(tables: TableConnection, file: IO[bytes], exported: str) -> int:
    """Write all rows and return their number. The memory that is used does not depend on it.

    Tables are sorted by name and rows by their key. A line is an object: the first has the format,
    the schema number, the time `exported` (RFC 3339) and the columns of the tables, each other one
    a table and the values of a row. Bytes are `{"base64": "…"}`.

    Raises:
        OSError: the file cannot be written.
    """
    ((schema,),) = await tables.fetch("select max(number) from schema_migrations")
    found = await tables.list_tables()
    columns = {table.name: [column.name for column in table.columns] for table in found}
    header = {"format": FORMAT, "schema": int(schema), "exported": exported, "tables": columns}
    file.write(_encoder.encode(header) + b"\n")
    return sum([await _export_table(tables, table, file) for table in found])


async def _export_table(tables: TableConnection, table: Table, file: IO[bytes]) -> int:
    count = 0
    async for page in tables.stream(table):
        lines = [
            _encoder.encode({"table": table.name, "row": [_json_value(value) for value in row]})
            for row in page
        ]
        file.write(b"\n".join(lines) + b"\n")
        count += len(page)
    return count


def _json_value(value: SqlValue) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value

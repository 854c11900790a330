"""Choice of the maintenance by the URL of a database."""

from pathlib import Path

from internal.database_address.address import is_postgres
from internal.storage.database_url import database_path, postgres_class
from internal.storage.maintenance.interface import DatabaseMaintenance
from internal.storage.maintenance.sqlite_maintenance import SqliteMaintenance


def find_maintenance(url: str | Path) -> DatabaseMaintenance:
    """Return the maintenance of the database at a path or URL. Opens nothing.

    Raises:
        StoreCorrupt: the URL is malformed.
        StoreUnavailable: a package for it is missing.
    """
    if not is_postgres(str(url)):
        return SqliteMaintenance(database_path(str(url)).resolve())
    postgres_class()
    from internal.storage.maintenance.postgres_maintenance import (  # noqa: PLC0415 - an optional package
        PostgresMaintenance,
    )

    return PostgresMaintenance(str(url))

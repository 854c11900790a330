"""The home folder of these tests, with either kind of database."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from internal.config.home import prepare, write_stored_settings
from tests.support.postgres_server import shared_server

IS_POSTGRES = os.environ.get("LARKSPUR_TEST_DATABASE") == "postgres"  # noqa: TID251 - set by make


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home folder of the test's own. Its settings may name a PostgreSQL database."""
    folder = prepare(tmp_path / "home")
    if not IS_POSTGRES:
        yield folder
        return
    server = shared_server()
    name = server.create_database()
    write_stored_settings(folder, {"database": {"url": server.url(name)}})
    yield folder
    server.drop_database(name)

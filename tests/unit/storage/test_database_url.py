"""Paths and URLs of databases."""

from pathlib import Path

import pytest

from internal.agent.domain.errors import StoreCorrupt
from internal.storage.database_url import open_database
from tests.support.database_files import file_contents


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "larkspur.db"


@pytest.mark.parametrize("prefix", ["sqlite:///", ""])
async def test_paths_and_sqlite_urls(path: Path, prefix: str) -> None:
    async with open_database(f"{prefix}{path}"):
        assert path.name in file_contents(path.parent)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://host/larkspur", "names no user"),
        ("postgres://ana@host", "names no database"),
        ("mysql://host/larkspur", "is not a database URL"),
        ("sqlite://larkspur.db", "is not a database URL"),
        ("sqlite:///", "does not name a file"),
        ("", "does not name a file"),
        ("sqlite:////folder/", "does not name a file"),
        ("larkspur\0.db", "does not name a file"),
    ],
)
async def test_unsupported_urls(address: str, words: str) -> None:
    with pytest.raises(StoreCorrupt, match=words):
        async with open_database(address):
            pass

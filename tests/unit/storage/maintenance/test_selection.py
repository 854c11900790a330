"""The maintenance that belongs to a URL."""

from pathlib import Path

import pytest

from internal.agent.domain.errors import StoreCorrupt
from internal.storage.maintenance.selection import find_maintenance


def test_a_path_and_a_url_name_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "larkspur.db"
    (tmp_path / "link").symlink_to(tmp_path)
    places = {
        find_maintenance(address).place
        for address in (path, f"sqlite:///{path}", f"sqlite:///{tmp_path}/link/larkspur.db")
    }
    assert places == {f"sqlite:///{path}"}
    assert find_maintenance(path).kind == "sqlite"


def test_the_place_of_a_server_has_no_password() -> None:
    found = find_maintenance("postgresql://ana:s3cret@db.example:6000/birds")
    assert (found.kind, found.place) == ("postgresql", "postgresql://db.example:6000/birds")


@pytest.mark.parametrize("url", ["mysql://localhost/birds", "sqlite:///", "postgresql://localhost"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(StoreCorrupt):
        find_maintenance(url)

"""What a browser must load before it shows anything."""

import gzip

import pytest

from internal.channels.web.static_page import DIST, read_page

pytestmark = pytest.mark.browser

MOST_SCRIPT = 150_000
MOST_STYLE = 12_000


def test_the_scripts_of_the_page_fit_its_budget() -> None:
    assets = read_page().assets
    assert assets, "The page is not built: run make page."
    sizes = {
        kind: sum(
            len(asset.bodies["gzip"]) for name, asset in assets.items() if name.endswith(kind)
        )
        for kind in (".js", ".css")
    }
    assert 0 < sizes[".js"] <= MOST_SCRIPT
    assert 0 < sizes[".css"] <= MOST_STYLE


def test_what_is_compressed_is_what_is_meant() -> None:
    for asset in read_page().assets.values():
        assert gzip.decompress(asset.bodies["gzip"]) == asset.bodies[""]
        assert len(asset.bodies["br"]) < len(asset.bodies["gzip"])


def test_the_page_itself_has_nothing_inline_and_nothing_foreign() -> None:
    index = (DIST / "index.html").read_text(encoding="utf-8")
    assert "<style" not in index
    assert "http:" not in index
    assert "https:" not in index
    assert all("src=" in tag for tag in index.split("<script")[1:])

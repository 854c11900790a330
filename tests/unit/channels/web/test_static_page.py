"""Reading the built page."""

from pathlib import Path

from internal.channels.web.static_page import read_page


def test_a_missing_page_is_empty(tmp_path: Path) -> None:
    page = read_page(tmp_path / "dist")
    assert (page.index, page.assets) == (b"", {})


def test_the_smallest_accepted_encoding_is_chosen(tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    (tmp_path / "index.html").write_text("the page")
    for name in ("main.js", "main.js.gz", "main.js.br", "main.js.map"):
        (assets / name).write_text(name)
    page = read_page(tmp_path)
    assert page.index == b"the page"
    assert set(page.assets) == {"main.js"}
    script = page.assets["main.js"]
    assert script.media_type.startswith("text/javascript")
    assert script.best_encoding(["gzip", "br"]) == "br"
    assert script.best_encoding(["gzip"]) == "gzip"
    assert script.best_encoding(["zstd"]) == ""
    assert script.bodies["gzip"] == b"main.js.gz"

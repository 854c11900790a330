"""The size of the built page, in bytes after gzip."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from internal.channels.web.static_page import DIST, read_page

pytestmark = pytest.mark.browser

MAX_FIRST_LOAD = 145_000
"""The scripts that a conversation loads before it is shown."""
MAX_CHUNKS = {
    "decision": 9_500,
    "diagram": 2_000,
    "dialogs": 4_000,
    "login": 2_000,
    "sessions": 6_000,
    "task_options": 2_000,
    "run_actions": 3_500,
    # a sentence for each refusal of a model, in both languages
    "run_texts": 7_000,
    "earlier_messages": 2_000,
    "files": 19_000,
    "highlight": 27_000,
    "math": 78_000,
    "notifications": 2_000,
    "operation": 2_500,
    "plain_http_notice": 1_500,
    # a Chinese text for each reason of the server to refuse a request
    "refusals": 9_500,
    "settings": 14_000,
    "task_modes": 2_500,
    "tasks": 5_000,
    "virtual_rows": 5_000,
    "waiting_messages": 2_500,
    "welcome": 2_000,
    "zh": 3_000,
}
"""The chunks that are loaded on demand, or when the browser is idle."""
MAX_STYLES = 12_000

Manifest = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    """Vite's list of chunks with their static and dynamic imports."""
    path = DIST / ".vite" / "manifest.json"
    assert path.is_file(), "The page is not built: run make page."
    chunks: Manifest = json.loads(path.read_text(encoding="utf-8"))
    return chunks


def gzip_size(file: str) -> int:
    return len(read_page().assets[file.removeprefix("assets/")].bodies["gzip"])


def static_imports(manifest: Manifest, name: str) -> set[str]:
    """A chunk and all chunks that it imports statically."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current not in found:
            found.add(current)
            waiting += manifest[current].get("imports", [])
    return found


def first_load(manifest: Manifest) -> set[str]:
    entry = next(name for name, chunk in manifest.items() if chunk.get("isEntry"))
    return static_imports(manifest, entry)


def chunk_name(manifest: Manifest, name: str) -> str:
    """The name of a chunk's file without its hash of eight characters."""
    return Path(manifest[name]["file"]).stem[:-9]


def scripts(manifest: Manifest) -> set[str]:
    return {name for name, chunk in manifest.items() if chunk["file"].endswith(".js")}


def test_the_first_load_of_a_conversation_fits_its_budget(manifest: Manifest) -> None:
    sizes = {name: gzip_size(manifest[name]["file"]) for name in first_load(manifest)}
    assert 0 < sum(sizes.values()) <= MAX_FIRST_LOAD, sizes


def test_every_chunk_loaded_on_demand_fits_its_budget(manifest: Manifest) -> None:
    sizes = {
        chunk_name(manifest, name): gzip_size(manifest[name]["file"])
        for name in scripts(manifest) - first_load(manifest)
    }
    assert sizes.keys() == MAX_CHUNKS.keys()
    assert {name: size for name, size in sizes.items() if size > MAX_CHUNKS[name]} == {}


def test_no_chunks_import_each_other(manifest: Manifest) -> None:
    """In a cycle the order of evaluation depends on the first loaded chunk, and one may fail."""
    for name, chunk in manifest.items():
        below = {one for each in chunk.get("imports", []) for one in static_imports(manifest, each)}
        assert name not in below


def test_all_styles_fit_their_budget() -> None:
    assets = read_page().assets.items()
    size = sum(len(asset.bodies["gzip"]) for name, asset in assets if name.endswith(".css"))
    assert 0 < size <= MAX_STYLES


def test_compressed_assets_have_the_content_of_the_originals() -> None:
    for asset in read_page().assets.values():
        assert gzip.decompress(asset.bodies["gzip"]) == asset.bodies[""]
        assert len(asset.bodies["br"]) < len(asset.bodies["gzip"])


def test_index_html_has_no_inline_code_and_no_foreign_urls() -> None:
    index = (DIST / "index.html").read_text(encoding="utf-8")
    assert "<style" not in index
    assert "http:" not in index
    assert "https:" not in index
    assert all("src=" in tag for tag in index.split("<script")[1:])

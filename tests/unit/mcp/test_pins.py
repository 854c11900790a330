"""The pins and tools of servers in the home folder."""

from pathlib import Path

import pytest

from internal.mcp.manifest import ListedTool, Manifest, build_manifest
from internal.mcp.pins import McpPins, McpPinsUnreadable


def manifest(*descriptions: str) -> Manifest:
    schema = {"type": "object"}
    listed = [ListedTool(f"t{n}", each, schema) for n, each in enumerate(descriptions)]
    return build_manifest("s", "d1", listed)


def test_what_was_accepted_stays_beside_what_is_found(tmp_path: Path) -> None:
    pins, other = McpPins(tmp_path), McpPins(tmp_path)
    first, second = manifest("a"), manifest("b", "c")
    assert pins.get("s") is None
    assert pins.record("s", first)
    assert not other.record("s", first)
    pins.accept("s", first)
    other.record("s", second)
    known = pins.tools("s")
    assert (known.found, known.accepted) == (second, first.tools)
    pin = other.get("s")
    assert pin is not None
    assert (pin.definition, pin.tools) == ("d1", {"t0": first.tools[0].sha256})
    for name in ("mcp-pins.json", "mcp/s.json"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def test_a_change_changes_the_version(tmp_path: Path) -> None:
    pins = McpPins(tmp_path)
    versions = [pins.version(("s",))]
    for change in (
        lambda: pins.record("s", manifest("a")),
        lambda: pins.accept("s", manifest("a")),
        lambda: pins.withdraw("s"),
        lambda: pins.forget("s"),
    ):
        change()
        versions.append(pins.version(("s",)))
    assert len(set(versions)) == 5
    assert pins.get("s") is None
    assert pins.tools("s").found is None


@pytest.mark.parametrize(
    "content", ["", "{}", '{"pins": []}', '{"pins": {"s": {"definition": 1}}}']
)
def test_damaged_pins_accept_nothing_and_are_not_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / "mcp-pins.json").write_text(content)
    pins = McpPins(tmp_path)
    with pytest.raises(McpPinsUnreadable, match="is damaged"):
        pins.get("s")
    with pytest.raises(McpPinsUnreadable):
        pins.accept("s", manifest("a"))
    assert (tmp_path / "mcp-pins.json").read_text() == content


def test_damaged_tools_are_none(tmp_path: Path) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "s.json").write_text('{"found": 3}')
    assert McpPins(tmp_path).tools("s").found is None

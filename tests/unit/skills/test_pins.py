"""The accepted hashes of skills."""

import stat
from pathlib import Path

import pytest

from internal.skills.pins import PinsUnreadable, SkillPins


def test_a_pin_is_kept_in_a_private_file_until_it_is_removed(tmp_path: Path) -> None:
    pins, folder = SkillPins(tmp_path), tmp_path / "skills" / "a"
    assert pins.get(folder) is None
    pins.put(folder, "abc")
    assert SkillPins(tmp_path).get(folder) == "abc"
    assert stat.S_IMODE((tmp_path / "skills.json").stat().st_mode) == 0o600
    assert {each.name for each in tmp_path.iterdir()} == {"skills.json", "skills.lock"}
    pins.put(folder, None)
    assert pins.get(folder) is None


@pytest.mark.parametrize("text", ["", "[]", '{"pins": []}', '{"pins": {"a": 1}}', "[" * 100_000])
def test_a_damaged_file_has_no_pins_and_is_not_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / "skills.json").write_text(text)
    pins = SkillPins(tmp_path)
    assert pins.get(tmp_path) is None
    with pytest.raises(PinsUnreadable):
        pins.put(tmp_path, "abc")
    assert (tmp_path / "skills.json").read_text() == text

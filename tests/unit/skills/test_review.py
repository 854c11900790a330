"""Content of a review."""

from pathlib import Path

from internal.skills.library import read_skill
from internal.skills.review import MAX_PLACES, review_skill


def test_scripts_binary_files_and_invisible_characters_are_found(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("\ufeff---\ndescription: d\r\n---\nsee\u200bthis\n\u202ex")
    (tmp_path / "run").write_text("#!/bin/sh\n")
    (tmp_path / "image").write_bytes(b"\x89PNG\0")
    found = review_skill(read_skill(tmp_path))
    assert found.scripts == ("run",)
    assert found.binary == ("image",)
    places = [(each.path, each.line, each.column, each.code) for each in found.invisible]
    assert places == [("SKILL.md", 4, 4, "U+200B"), ("SKILL.md", 5, 1, "U+202E")]


def test_the_number_of_places_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("---\ndescription: d\n---\n" + "\u200b" * 1_000)
    assert len(review_skill(read_skill(tmp_path)).invisible) == MAX_PLACES

"""Skills as the model reads them."""

from pathlib import Path

import pytest

from internal.agent.domain.errors import ToolError
from internal.skills.library import SkillLibrary, read_skill
from internal.skills.presentation import (
    describe_catalogue,
    load_skill_text,
    read_skill_file_text,
)
from internal.skills.skill_places import SkillPlace


@pytest.fixture
def library(tmp_path: Path) -> SkillLibrary:
    folder = tmp_path / "own" / "reports"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\ndescription: {'d ' * 500}\n---\n{'b' * 40_000}")
    (folder / "notes.md").write_text("notes")
    (folder / "image").write_bytes(b"\xff")
    pins = {folder: read_skill(folder).sha256}
    return SkillLibrary([SkillPlace(tmp_path / "own", "own")], pinned=pins.get)


def test_the_catalogue_is_short_and_counts_what_is_left_out(library: SkillLibrary) -> None:
    skills = library.offered() * 5
    assert describe_catalogue([]) == ""
    lines = describe_catalogue(skills).splitlines()
    assert len(lines) == 5
    assert max(map(len, lines)) <= 220
    last = describe_catalogue(skills, 150).splitlines()[-1]
    assert last.endswith("more: find them with load_skill")


def test_a_long_skill_is_read_in_parts(library: SkillLibrary) -> None:
    first = load_skill_text(library, "reports")
    assert "Files: SKILL.md, image, notes.md" in first
    assert "10,000 more characters, from offset 30000 on" in first
    assert load_skill_text(library, "reports", 30_000).count("b" * 10_000) == 1
    assert read_skill_file_text(library, "reports", "notes.md") == "notes"


@pytest.mark.parametrize("path", ["../../secret", "/etc/passwd", "missing", "image"])
def test_a_file_that_cannot_be_read_is_a_tool_error(library: SkillLibrary, path: str) -> None:
    with pytest.raises(ToolError):
        read_skill_file_text(library, "reports", path)


def test_a_changed_byte_withholds_a_skill(library: SkillLibrary) -> None:
    (library.find("reports").folder / "notes.md").write_text("Notes")
    with pytest.raises(ToolError, match="changed since its review"):
        load_skill_text(library, "reports")
    with pytest.raises(ToolError, match="changed since its review"):
        read_skill_file_text(library, "reports", "notes.md")
    with pytest.raises(ToolError, match="there is no skill 'none'"):
        load_skill_text(library, "none")

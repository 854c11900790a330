"""The files of a skill and their hash."""

import os
from pathlib import Path

import pytest

from internal.skills.errors import SkillUnreadable
from internal.skills.skill_folder import MAX_BYTES, read_contents


def test_the_hash_covers_names_bytes_and_the_executable_bit(tmp_path: Path) -> None:
    script = tmp_path / "scripts" / "run.py"
    script.parent.mkdir()
    script.write_text("print(1)")
    hashes = [read_contents(tmp_path).sha256]
    script.write_text("print(2)")
    hashes.append(read_contents(tmp_path).sha256)
    script.chmod(0o755)
    hashes.append(read_contents(tmp_path).sha256)
    script.rename(script.with_name("ran.py"))
    hashes.append(read_contents(tmp_path).sha256)
    (tmp_path / "link").symlink_to("scripts")
    hashes.append(read_contents(tmp_path).sha256)
    assert len(set(hashes)) == len(hashes)
    assert read_contents(tmp_path).sha256 == hashes[-1]


def test_scripts_are_known_by_mode_place_or_first_line(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "a.py").write_text("1")
    (tmp_path / "b").write_text("#!/bin/sh")
    (tmp_path / "c").write_text("1")
    (tmp_path / "c").chmod(0o700)
    (tmp_path / "d.md").write_text("1")
    entries = read_contents(tmp_path).entries
    assert [each.path for each in entries if each.is_script] == ["b", "c", "scripts/a.py"]


def test_a_link_is_followed_inside_the_skill_only(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    skill = tmp_path / "skill"
    skill.mkdir()
    (skill / "a.md").write_text("inside")
    (skill / "b.md").symlink_to("a.md")
    (skill / "c.md").symlink_to("../secret")
    assert read_contents(skill, "b.md").kept == b"inside"
    for path in ("c.md", "../secret", str(tmp_path / "secret"), "a\0b"):
        with pytest.raises(SkillUnreadable):
            read_contents(skill, path)
    assert read_contents(skill, "missing").kept is None


def test_bounds_and_special_files_are_problems(tmp_path: Path) -> None:
    many, large, special = (tmp_path / name for name in ("many", "large", "special"))
    for folder in (many, large, special):
        folder.mkdir()
    for number in range(501):
        (many / str(number)).touch()
    with (large / "file").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    os.mkfifo(special / "pipe")
    for folder, problem in ((many, "500 files"), (large, "bytes"), (special, "neither a file")):
        with pytest.raises(SkillUnreadable, match=problem):
            read_contents(folder)

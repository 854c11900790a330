"""Discovery of skills, and offered skills."""

import os
from pathlib import Path

import pytest

from internal.agent.domain.errors import NotFound
from internal.skills.library import MAX_SKILLS, SkillLibrary, shipped_folder
from internal.skills.skill_folder import folder_version
from internal.skills.skill_places import SkillPlace
from tests.support.skills import write_skill


def write(folder: Path, name: str, description: str = "Does it.") -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\nBody")
    return folder


def test_only_shipped_and_reviewed_skills_are_offered(tmp_path: Path) -> None:
    own, shipped = SkillPlace(tmp_path / "own", "own"), SkillPlace(tmp_path / "shipped", "shipped")
    pins: dict[Path, str] = {}
    library = SkillLibrary([own, shipped], ["read_file"], pins.get)
    ours = write(own.folder / "ours", "ours")
    write(shipped.folder / "theirs", "theirs")
    assert {skill.name: skill.state for skill in library.skills()} == {
        "ours": "not reviewed",
        "theirs": "offered",
    }
    pins[ours] = library.find("ours").sha256
    assert [skill.name for skill in library.offered()] == ["ours", "theirs"]
    (ours / "new").touch()
    assert library.find("ours").state == "changed since its review"


def test_a_second_skill_of_a_name_and_one_named_like_a_tool_are_reported(tmp_path: Path) -> None:
    first, second = (SkillPlace(tmp_path / name, "shipped") for name in ("first", "second"))
    write(first.folder / "a", "same")
    write(second.folder / "b", "Same")
    write(second.folder / "c", "read-file")
    (second.folder / "d").mkdir()
    (second.folder / "d" / "SKILL.md").write_text("")
    library = SkillLibrary([first, second], ["read_file"])
    used, *others = library.skills()
    assert used.state == "offered"
    assert [skill.state for skill in others] == ["not usable"] * 3
    problems = "\n".join(skill.problem for skill in others)
    assert "a skill of the same name is used" in problems
    assert "read-file is the name of a built-in tool" in problems
    assert "line 1: the skill has no description" in problems
    assert library.find("same") == used
    with pytest.raises(NotFound):
        library.find("none")


def test_a_folder_in_two_places_belongs_to_the_first(tmp_path: Path) -> None:
    folder = write(tmp_path / "inner" / "a", "a")
    places = [SkillPlace(tmp_path / "inner", "shipped"), SkillPlace(tmp_path, "shared")]
    (found,) = SkillLibrary(places).skills()
    assert (found.folder, found.state) == (folder, "offered")


def test_the_number_of_skills_is_bounded(tmp_path: Path) -> None:
    for number in range(MAX_SKILLS + 5):
        write(tmp_path / f"s{number:04}", f"s{number:04}")
    found = SkillLibrary([SkillPlace(tmp_path, "shipped")]).skills()
    assert len(found) == MAX_SKILLS + 1
    assert f"only the first {MAX_SKILLS}" in found[-1].problem


def test_skills_after_the_one_that_is_looked_for_are_not_read(tmp_path: Path) -> None:
    for name in ("bat", "cat"):
        write_skill(tmp_path, name)
    read: list[str] = []

    def pinned(folder: Path) -> None:
        read.append(folder.name)

    library = SkillLibrary([SkillPlace(tmp_path / "skills", "own")], pinned=pinned)
    assert library.find("bat").name == "bat"
    assert read == ["bat"]


def test_only_what_has_changed_is_read_again(tmp_path: Path) -> None:
    shipped = [SkillPlace(shipped_folder(), "shipped")]
    library = SkillLibrary(shipped)
    first = library.skills()
    again = library.within(tmp_path).skills()
    assert again == first
    assert all(one.file is two.file for one, two in zip(first, again, strict=True))
    assert all(
        one.file is not two.file
        for one, two in zip(first, SkillLibrary(shipped).skills(), strict=True)
    )


def test_a_change_that_keeps_size_and_modification_time_is_found(tmp_path: Path) -> None:
    folder = write(tmp_path / "skills" / "a", "a", "One.")
    file = folder / "SKILL.md"
    library = SkillLibrary([SkillPlace(tmp_path / "skills", "shipped")])
    assert [each.description for each in library.skills()] == ["One."]
    status = file.stat()
    later = status.st_ctime_ns + 10**10
    version = folder_version(folder, later)
    assert version == folder_version(folder, later)
    file.write_text(file.read_text().replace("One.", "Two."))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file.stat().st_size == status.st_size
    assert folder_version(folder, later) != version
    assert [each.description for each in library.skills()] == ["Two."]


def test_a_folder_that_was_just_changed_has_no_version(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", "a")
    now = folder.stat().st_ctime_ns
    assert folder_version(folder, now) is None
    assert folder_version(folder, now + 10**10) is not None
    assert folder_version(tmp_path / "missing", now) is None


def test_a_linked_skill_is_one_of_its_own_folder(tmp_path: Path) -> None:
    stored = write(tmp_path / "store" / "3f9a", "pdf:forms")
    (tmp_path / "skills").mkdir()
    link = tmp_path / "skills" / "forms"
    link.symlink_to(stored)
    pins: dict[Path, str] = {}
    library = SkillLibrary([SkillPlace(tmp_path / "skills", "shared")], pinned=pins.get)
    found = library.find("forms")
    assert (found.folder, found.state) == (stored, "not reviewed")
    pins[stored] = found.sha256
    assert library.find("forms").state == "offered"
    link.unlink()
    link.symlink_to(write(tmp_path / "store" / "other", "forms"))
    assert library.find("forms").state == "not reviewed"


def test_links_of_a_working_folder_stay_within_it(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside" / "secret", "secret").parent
    workspace = tmp_path / "workspace"
    inner = write(workspace / "kept" / "inner", "inner")
    (workspace / ".claude").mkdir()
    (workspace / ".claude" / "skills").symlink_to("../kept")
    (workspace / ".agents").mkdir()
    (workspace / ".agents" / "skills").symlink_to(outside)
    (workspace / "kept" / "far").symlink_to(outside / "secret")
    found = {each.name: each for each in SkillLibrary([]).within(workspace).skills()}
    assert (found["inner"].folder, found["inner"].state) == (inner, "not reviewed")
    for name in ("skills", "far"):
        assert found[name].state == "not usable"
        assert f"leads out of {workspace}, to {outside}" in found[name].problem
    assert len(found) == 3


def test_a_folder_of_the_settings_that_is_missing_is_reported(tmp_path: Path) -> None:
    place = SkillPlace(tmp_path / "skils", "shared", is_expected=True)
    (found,) = SkillLibrary([place]).skills()
    assert found.problem.startswith("The folder cannot be read: No such file or directory")

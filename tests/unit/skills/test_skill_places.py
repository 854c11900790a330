"""Skills found in a folder."""

from pathlib import Path

from internal.skills.skill_places import FoundSkill, SkillPlace, find_skills, linked_folders


def write(folder: Path, file_name: str = "SKILL.md") -> Path:
    folder.mkdir(parents=True)
    (folder / file_name).write_text("---\ndescription: d\n---\n")
    return folder


def find(place: Path) -> list[FoundSkill]:
    return list(find_skills(SkillPlace(place, "shared")))


def test_skills_are_found_four_folders_deep(tmp_path: Path) -> None:
    place = tmp_path / "place"
    deep = write(place / "1/2/3/deep")
    write(place / "1/2/3/4/deeper")
    write(place / ".git/hidden")
    inner = write(place / "a", "skill.md")
    write(place / "a/nested")
    assert find(place) == [FoundSkill(deep, "deep"), FoundSkill(inner, "a")]
    assert find(tmp_path / "missing") == []


def test_links_are_followed_to_skills_and_collections(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    one, collected = write(tmp_path / "store" / "v1"), write(tmp_path / "more" / "collected")
    write(tmp_path / "more" / "a" / "too-deep")
    (place / "one").symlink_to(one)
    (place / "more").symlink_to(tmp_path / "more")
    (place / "loop").symlink_to(place)
    (place / "one-again").symlink_to(one)
    assert find(place) == [
        FoundSkill(collected, "collected", is_linked=True),
        FoundSkill(one, "one", is_linked=True),
    ]
    assert linked_folders(SkillPlace(place, "shared")) == [collected, one]


def test_links_to_no_skill_are_named(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "empty").mkdir()
    (place / "gone").symlink_to(tmp_path / "missing")
    (place / "none").symlink_to(tmp_path / "empty")
    (place / "file").symlink_to(__file__)
    assert [(each.name, each.problem) for each in find(place)] == [
        ("gone", f"{place / 'gone'} is a link to {tmp_path / 'missing'}, where nothing is."),
        ("none", f"{place / 'none'} is a link to {tmp_path / 'empty'}, which has no SKILL.md."),
    ]

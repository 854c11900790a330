"""Reviews of skills from any channel: refusals, and the content of a report."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from internal.agent.domain.errors import Conflict, FilesUnavailable, NotFound
from internal.skills.library import SkillLibrary
from internal.skills.pinned_reviews import MAX_REPORTED_CHARS, PinnedSkillReviews
from internal.skills.pins import PINS_FILE, SkillPins
from internal.skills.skill_places import SkillPlace
from tests.support.skills import skill_reviews, write_skill


def test_just_the_files_with_the_shown_hash_are_accepted_and_taken_back(tmp_path: Path) -> None:
    folder, reviews = write_skill(tmp_path), skill_reviews(tmp_path)
    shown = reviews.review("bird-song").skill
    assert (shown.origin, shown.state, shown.allowed_tools) == ("own", "not reviewed", ["shell"])
    assert [(each.path, each.is_script) for each in shown.files] == [
        ("SKILL.md", False),
        ("scripts/sing.sh", True),
    ]
    assert reviews.decide("bird-song", shown.sha256, accept=True).state == "offered"
    (folder / "scripts" / "sing.sh").write_text("echo tirra-lirrA\n")
    assert [each.state for each in reviews.list_all()] == ["changed since its review"]
    for accept in (True, False):
        with pytest.raises(Conflict, match="have changed since they were shown"):
            reviews.decide("bird-song", shown.sha256, accept=accept)
    changed = reviews.review("bird-song").skill.sha256
    assert reviews.decide("bird-song", changed, accept=False).state == "not reviewed"
    assert [each.state for each in reviews.list_all()] == ["not reviewed"]
    with pytest.raises(NotFound):
        reviews.decide("bird-sing", changed, accept=True)


def test_a_shipped_skill_needs_no_review(tmp_path: Path) -> None:
    write_skill(tmp_path).parent.rename(tmp_path / "shipped")
    reviews = skill_reviews(tmp_path)
    shown = reviews.review("bird-song").skill
    assert (shown.origin, shown.state) == ("shipped", "offered")
    with pytest.raises(Conflict, match="is shipped with Larkspur and needs no review"):
        reviews.decide("bird-song", shown.sha256, accept=False)


def test_a_skill_that_cannot_be_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    folder, reviews = write_skill(tmp_path), skill_reviews(tmp_path)
    (folder / "SKILL.md").write_text("")
    (listed,) = reviews.list_all()
    assert (listed.state, listed.sha256, listed.files) == ("not usable", "", [])
    assert "SKILL.md" in listed.problem
    with pytest.raises(Conflict, match=r"SKILL\.md"):
        reviews.review("bird-song")
    with pytest.raises(Conflict, match=r"SKILL\.md"):
        reviews.decide("bird-song", "0" * 64, accept=True)


def test_a_folder_whose_name_is_no_text_is_listed(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path / "skills") + b"/\xff"))
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("")
    (listed,) = skill_reviews(tmp_path).list_all()
    assert listed.name == "?"
    assert "?" in listed.problem


def test_a_report_shows_what_is_hidden_and_how_much_is_missing(tmp_path: Path) -> None:
    write_skill(tmp_path, body=f"Sing.\u202e\n{'x' * MAX_REPORTED_CHARS}")
    report = skill_reviews(tmp_path).review("bird-song")
    assert report.scripts == ["scripts/sing.sh"]
    assert [(each.path, each.line, each.code) for each in report.invisible] == [
        ("SKILL.md", 6, "U+202E")
    ]
    assert "\u202e" not in report.text
    assert report.text.startswith("---\nname: bird-song")
    assert not report.is_complete


def test_a_decision_that_cannot_be_stored_is_refused(tmp_path: Path) -> None:
    write_skill(tmp_path)
    reviews = skill_reviews(tmp_path)
    sha256 = reviews.review("bird-song").skill.sha256
    (tmp_path / PINS_FILE).write_text("{")
    with pytest.raises(Conflict, match="is damaged"):
        reviews.decide("bird-song", sha256, accept=True)
    library = SkillLibrary([SkillPlace(tmp_path / "skills", "own")])
    nowhere = PinnedSkillReviews(library, SkillPins(tmp_path / "missing"), ())
    with pytest.raises(FilesUnavailable, match="cannot be stored"):
        nowhere.decide("bird-song", sha256, accept=True)


def test_decisions_at_the_same_time_are_all_stored(tmp_path: Path) -> None:
    names = [f"bird-{number}" for number in range(8)]
    for name in names:
        write_skill(tmp_path, name)
    reviews = skill_reviews(tmp_path)
    hashes = {each.name: each.sha256 for each in reviews.list_all()}
    with ThreadPoolExecutor(8) as threads:
        # each with a file descriptor of its own, as other processes have
        others = [skill_reviews(tmp_path) for _ in names]
        list(
            threads.map(
                lambda name, other: other.decide(name, hashes[name], accept=True), names, others
            )
        )
    assert {each.state for each in reviews.list_all()} == {"offered"}

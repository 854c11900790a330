"""The owner reviews a skill that a run wants to load: a question, bound to the files it shows."""

from pathlib import Path
from typing import Any

import pytest

from internal.skills.library import read_skill
from tests.support.agent_app import Core, open_agent
from tests.support.anthropic_server import Call, Reply, seen_in
from tests.support.skills import skill_reviews, write_skill

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}
LOAD = Call("load_skill", {"name": "moth"})


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace" / ".claude" / "skills" / "moth"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: moth\ndescription: About the moth.\nallowed-tools: Bash(rm:*)\n---\n"
        "Look closely.\u202e\n"
    )
    (folder / "scripts" / "count.sh").write_text("echo 3\n")
    return folder


def review(folder: Path) -> Call:
    return Call("review_skill", {"name": "moth", "sha256": read_skill(folder).sha256})


async def start(here: Core, skill: Path, **options: Any) -> Any:
    return await here.submit("go", workspace=str(skill.parents[2]), **options)


async def test_a_run_asks_the_owner_even_in_full_mode_and_loads_the_skill_after_a_yes(
    home: Path, skill: Path
) -> None:
    script = [Reply(calls=[LOAD]), Reply(calls=[review(skill)]), Reply("done"), Reply("again")]
    async with open_agent(home, script, NO_GATES) as here:
        made = await start(here, skill)
        asked = await here.asked(made)
        await here.answer(asked["question_id"])
        await here.end_of(made)
        await here.end_of(await start(here, skill))
        first, second, third, last = here.model.requests
    assert (asked["title"], asked["who"]) == ("Trust moth?", "owner")
    (item,) = asked["calls"]
    assert (item["reason_code"], item["reason_about"]) == ("owner", "moth")
    assert not item.get("rules")
    for shown in (
        "Skill moth (working folder): not reviewed",
        "scripts/count.sh (7 bytes, script)",
        "Invisible character: SKILL.md, line 6, column 14: U+202E",
        "Asks for (grants nothing): Bash(rm:*)",
        "Look closely.",
    ):
        assert shown in item["diff"]
    assert "\u202e" not in str(asked)
    assert "Withheld until the owner reviews them; load_skill says how to ask: moth" in str(first)
    assert "About the moth." not in str(first)
    hint = f"ask the owner with review_skill, sha256 {read_skill(skill).sha256}"
    assert hint in seen_in(second).last_result
    assert "Look closely." in seen_in(third).last_result
    assert "- moth: About the moth." in str(last["system"])


async def test_a_no_and_files_that_change_before_the_yes_leave_the_skill_withheld(
    home: Path, skill: Path
) -> None:
    script = [Reply(calls=[review(skill)]), Reply("one"), Reply(calls=[review(skill)]), Reply("x")]
    async with open_agent(home, script, NO_GATES) as here:
        made = await start(here, skill)
        await here.answer((await here.asked(made))["question_id"], "reject", "not that one")
        await here.end_of(made)
        made = await start(here, skill)
        asked = await here.asked(made)
        (skill / "scripts" / "count.sh").write_text("echo 4\n")
        await here.answer(asked["question_id"])
        await here.end_of(made)
        refused, changed = (seen_in(here.model.requests[n]).last_result for n in (1, 3))
    assert "not that one" in refused
    assert "have changed since they were shown" in changed
    assert skill_reviews(home).within(str(skill.parents[2])).list_all()[0].state == "not reviewed"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": "moth", "sha256": "0" * 64}, "have changed since they were shown"),
        ({"name": "moth", "sha256": "latest"}, "sha256"),
        ({"name": "moth"}, "sha256"),
        ({"name": "code-review", "sha256": "0" * 64}, "needs no review"),
        ({"name": "mouse", "sha256": "0" * 64}, "There is no skill"),
    ],
)
async def test_a_review_that_cannot_be_accepted_is_not_asked(
    home: Path, skill: Path, arguments: dict[str, str], sentence: str
) -> None:
    script = [Reply(calls=[Call("review_skill", arguments)]), Reply("done")]
    async with open_agent(home, script, NO_GATES) as here:
        await here.end_of(await start(here, skill))
        assert sentence in seen_in(here.model.requests[1]).last_result


async def test_a_review_is_refused_where_nobody_can_be_asked(home: Path, skill: Path) -> None:
    script = [Reply(calls=[review(skill)]), Reply("done")] * 2
    async with open_agent(home, script, NO_GATES) as here:
        await here.end_of(await start(here, skill, people=False))
        await here.end_of(await start(here, skill, permission_mode="deny"))
        alone, denied = (seen_in(here.model.requests[n]).last_result for n in (1, 3))
    assert "Nobody can be asked, so the answer is no." in alone
    assert "In deny mode nobody is asked." in denied


async def test_a_reviewed_skill_is_not_reviewed_again_and_the_owners_answer_is_audited(
    home: Path, tmp_path: Path
) -> None:
    folder = write_skill(home, "moth")
    script = [
        Reply(calls=[review(folder)]),
        Reply("one"),
        Reply(calls=[review(folder)]),
        Reply("two"),
    ]
    async with open_agent(home, script, NO_GATES) as here:
        made = await here.submit("go", workspace=str(tmp_path))
        asked = await here.asked(made)
        await here.answer(asked["question_id"])
        await here.end_of(made)
        await here.end_of(await here.submit("go", workspace=str(tmp_path)))
        assert "is reviewed: call load_skill" in seen_in(here.model.requests[3]).last_result

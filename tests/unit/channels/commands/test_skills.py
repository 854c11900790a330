"""The list of skills, as every channel shows it."""

from internal.channels.commands.records import ListedSkill
from internal.channels.commands.skills import COMMAND
from tests.support.shared_commands import KeptChannel


async def test_without_skills_the_way_to_add_one_is_said(channel: KeptChannel) -> None:
    await COMMAND.handler(channel, "")
    assert channel.said == ["No skills. Add one: larkspur skills add FOLDER"]
    assert channel.rows == []


async def test_a_review_is_named_only_if_a_skill_is_withheld(channel: KeptChannel) -> None:
    channel.listed_skills = [ListedSkill("a", "offered", "First.")]
    await COMMAND.handler(channel, "")
    assert channel.said == []
    channel.listed_skills += [ListedSkill("b", "changed since its review", "Second.")]
    await COMMAND.handler(channel, "")
    assert channel.said == [
        "The model gets a skill only after a review: larkspur skills review NAME"
    ]
    assert [tuple(row.values()) for row in channel.rows[1:]] == [
        ("a", "offered", "First."),
        ("b", "changed since its review", "Second."),
    ]

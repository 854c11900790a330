"""Reactions of people on answers are feedback, as the page stores it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Feedback
from internal.simulators.lark import user_actions
from internal.simulators.lark.model import Person
from tests.support.lark_gateway import LarkGateway, open_lark_gateway
from tests.support.lark_runs import tasks, until
from tests.support.scripted_model import Reply


def react(lark: LarkGateway, message_id: str, emoji: str, person: Person | None = None) -> None:
    """Add an emoji to a message, or remove it."""
    who = (person or lark.person).open_id
    user_actions.react(lark.sim.lark.state, who, message_id, emoji)


async def feedback(lark: LarkGateway) -> Feedback | None:
    [task] = await tasks(lark)
    return task.feedback


async def until_rated(lark: LarkGateway, rating: str | None) -> None:
    async def holds() -> bool:
        found = await feedback(lark)
        return (None if found is None else found.rating) == rating

    await until(lark, holds)


async def answered(lark: LarkGateway) -> str:
    """Return the id of an answer in the group."""
    await lark.sim.send_text(lark.person, lark.group, "hello", mention_bot=True)
    await lark.until_replies(1, lark.group)
    await lark.settled()
    return lark.from_bot(lark.group)[0].message_id


async def test_a_thumb_is_feedback_until_it_is_taken_back(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("42")]) as lark:
        message_id = await answered(lark)
        react(lark, message_id, "THUMBSUP")
        await until_rated(lark, "up")
        given = await lark.core.services.gateway.list_feedback(LOCAL_OWNER)
        assert [(each.rating, each.by.rsplit(":")[-1]) for each in given] == [
            ("up", lark.person.open_id)
        ]
        react(lark, message_id, "HEART")
        react(lark, message_id, "HEART")  # the thumb is still there
        react(lark, message_id, "SMILE")  # rates nothing
        await lark.settled()
        await until_rated(lark, "up")
        react(lark, message_id, "THUMBSUP")
        await until_rated(lark, None)
        assert await feedback(lark) is None


async def test_the_newest_person_counts_and_takes_back_only_their_own(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("42")]) as lark:
        message_id, second = await answered(lark), lark.sim.people[1]
        react(lark, message_id, "THUMBSUP")
        await until_rated(lark, "up")
        react(lark, message_id, "ThumbsDown", second)
        await until_rated(lark, "down")
        react(lark, message_id, "THUMBSUP")  # the first person takes theirs back
        await lark.settled()
        await until_rated(lark, "down")


async def test_reactions_that_arrive_in_the_wrong_order_say_the_same(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("42")]) as lark:
        message_id, person = await answered(lark), lark.person
        event: dict[str, Any] = {
            "message_id": message_id,
            "reaction_type": {"emoji_type": "THUMBSUP"},
            "operator_type": "user",
            "user_id": person.ids(),
        }
        for kind, at in (("deleted", 1790000002000), ("created", 1790000001000)) * 2:
            lark.sim.push(f"im.message.reaction.{kind}_v1", event | {"action_time": str(at)})
        await lark.settled()
        assert await feedback(lark) is None


@pytest.mark.slow
async def test_reactions_on_other_messages_and_of_bots_are_no_feedback(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("42")]) as lark:
        answer = await answered(lark)
        await lark.sim.send_text(lark.person, lark.group, "/status", mention_bot=True)
        await lark.until_replies(2, lark.group)
        await lark.settled()
        for message in lark.sim.messages(lark.group):
            if message.message_id != answer:
                react(lark, message.message_id, "THUMBSUP")
        own: dict[str, Any] = {
            "operator_type": "app",
            "app_id": "cli_other",
            "action_time": "1790000001000",
        }
        own |= {"message_id": answer, "reaction_type": {"emoji_type": "THUMBSUP"}}
        lark.sim.push("im.message.reaction.created_v1", own)
        await lark.settled()
        assert await feedback(lark) is None


async def test_reactions_make_an_event(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("42")]) as lark:
        message_id = await answered(lark)
        [task] = await tasks(lark)
        name = "workflow.feedback.given"
        watching = asyncio.create_task(
            lark.core.until(task.session_id, lambda event: event["event"] == name)
        )
        await lark.core.until(task.session_id, lambda event: "result" in event["event"])
        react(lark, message_id, "LGTM")
        payload = (await watching)[-1]["payload"]
        assert (payload["rating"], payload["by"]) == ("up", (await feedback_by(lark)))


async def feedback_by(lark: LarkGateway) -> str:
    found = await feedback(lark)
    return "" if found is None else found.by

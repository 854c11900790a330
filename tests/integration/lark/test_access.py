"""Who may do what in Lark, and answers that are written: through the real SDK's connection."""

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.questions import QuestionRecord
from internal.agent.domain.tasks import chat_name
from internal.channels.chat.policy import GroupRules
from internal.simulators.lark.model import Chat
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Reply, Rules, When, seen_in
from tests.support.lark_gateway import APP, QUIET, Rig, rig

T = TypeVar("T")
OPERATORS = replace(QUIET, operate=("*",))
TOUCH = Call("shell", {"command": "touch ran"})
COLOURS = Call("request_user", {"question": "Which colour?", "options": ["red", "green", "blue"]})


def needs(*calls: Call) -> list[Reply]:
    """Return a run that plans, makes these calls, says that it is over; then another task's."""
    return [
        Reply(calls=[plan("do it")]),
        Reply(calls=list(calls)),
        Reply("over"),
        Reply("another"),
        Reply("and another"),
    ]


async def open_questions(house: Rig, count: int, chat: Chat | None = None) -> list[QuestionRecord]:
    """Return the open questions of a chat as soon as there are so many and their cards are known.

    Cards are known to us a moment after they are seen.
    """
    gateway, stores = house.core.house.gateway, house.core.house.stores
    name = chat_name("lark", APP.app_id, (chat or house.dm).chat_id)

    async def found() -> list[QuestionRecord] | None:
        open_ = await gateway.queries.open_questions(name)
        keys = [f"{each.question.id}:asked" for each in open_]
        ids = [
            await house.core.house.database.read(partial(stores.outbox.get_remote_id, key))
            for key in keys
        ]
        return open_ if len(open_) == count and all(ids) else None

    return await until(house, found)


async def until(house: Rig, wanted: Callable[[], Awaitable[T | None]]) -> T:
    async with asyncio.timeout(20):
        while (found := await wanted()) is None:
            await house.sim.lark.changed_within(0.02)
    return found


async def card_of(house: Rig, asked: QuestionRecord) -> str:
    """Return the message that shows a question."""
    stores, key = house.core.house.stores, f"{asked.question.id}:asked"
    return await house.core.house.database.read(partial(stores.outbox.get_remote_id, key))


async def deeds(house: Rig) -> list[str]:
    found = await house.core.house.gateway.queries.audit_entries(LOCAL_OWNER)
    return [deed.action for deed in reversed(found)]


def results(house: Rig) -> str:
    """Return what the model was given last as a tool's result."""
    return seen_in(house.core.model.requests[-1]).last_result


async def code_for(house: Rig, role: str = "operate") -> str:
    access = house.core.house.gateway.access
    return (await access.create_code(role, LOCAL_OWNER, "cli")).code  # type: ignore[arg-type]  # a role


# Pairing


async def test_a_code_makes_an_operator_who_may_then_approve(tmp_path: Path) -> None:
    async with rig(tmp_path, needs(TOUCH), replace(QUIET, talk=())) as house:
        await house.say("touch it")
        assert "permission to use this bot" in (await house.until_replies(1))[0]
        code = await code_for(house)
        await house.say(f"/pair {code.lower()}")
        assert "answer approval questions" in (await house.until_replies(2))[1]
        await house.say("touch it")
        await open_questions(house, 1)
        said = await house.say("OK")
        assert (await house.until_replies(3))[2] == "over"
        await house.sim.until(lambda _: house.sim.lark.state.messages[said].reactions)
        people = await house.core.house.gateway.queries.people(LOCAL_OWNER)
        assert [(one.principal, one.name, one.role) for one in people] == [
            (f"lark:{APP.app_id}:{house.person.open_id}", house.person.name, "operate")
        ]


async def test_wrong_used_and_expired_codes_give_nothing(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim, rig(tmp_path, [], QUIET, sim=sim) as house:
        one, two = sim.people[:2]
        code, late = await code_for(house), "ABCD2345"
        people, past = house.core.house.stores.roles, "2026-01-01T00:00:00.000Z"
        digest = hashlib.sha256(late.encode()).hexdigest()
        await house.core.house.database.write(
            partial(people.add_pairing_code, digest, "owner", now=past, expires=past)
        )
        for number, text in enumerate(("/pair", "/pair 22222222", f"/配对 {late}"), 1):
            await house.say(text)
            said = (await house.until_replies(number))[-1]
            assert "larkspur pair" in said
        await house.say(f"/pair {code}")
        assert "Linked" in (await house.until_replies(4))[3]
        await sim.send_text(two, sim.dm(two), f"/pair {code}")
        assert "already used" in (await house.until_replies(1, sim.dm(two)))[0]
        access = house.core.house.gateway.access
        assert await access.get_rights(f"lark:{APP.app_id}:{two.open_id}") == frozenset()
        assert await access.get_rights(f"lark:{APP.app_id}:{one.open_id}") == {"talk", "operate"}
        assert (await deeds(house)).count("pairing.refused") == 3


async def test_after_five_wrong_codes_the_right_one_must_wait(tmp_path: Path) -> None:
    async with rig(tmp_path, []) as house:
        house.sim.set_faults(limits=False)
        code = await code_for(house)
        for number in range(5):
            await house.say("/pair 22222222")
            await house.until_replies(number + 1)
        await house.say(f"/pair {code}")
        assert "in ten minutes" in (await house.until_replies(6))[5]
        rights = house.core.house.gateway.access.get_rights
        assert await rights(f"lark:{APP.app_id}:{house.person.open_id}") == frozenset()


async def test_a_code_that_a_group_has_read_is_worth_nothing(tmp_path: Path) -> None:
    async with rig(tmp_path, []) as house:
        code = await code_for(house)
        await house.sim.send_text(house.person, house.group, f"/pair {code}", mention_bot=True)
        assert "direct chat" in (await house.until_replies(1, house.group))[0]
        await house.say(f"/pair {code}")
        assert "already used" in (await house.until_replies(1))[0]


async def test_a_right_that_is_taken_away_counts_no_more(tmp_path: Path) -> None:
    async with rig(tmp_path, needs(TOUCH)) as house:
        await house.say(f"/pair {await code_for(house)}")
        await house.until_replies(1)
        await house.say("touch it")
        await open_questions(house, 1)
        who = f"lark:{APP.app_id}:{house.person.open_id}"
        await house.core.house.gateway.access.remove_role(who, LOCAL_OWNER, "web")
        await house.say("OK")
        assert "Only operators" in (await house.until_replies(2))[1]
        await open_questions(house, 1)
        assert len(house.core.model.requests) == 2


# Groups


async def test_each_group_has_its_own_policy(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        first, second = sim.groups[:2]
        groups = {first.chat_id: GroupRules("open"), second.chat_id: GroupRules("off")}
        rules = replace(QUIET, groups=groups)
        async with rig(tmp_path, [Reply("heard"), Reply("never")], rules, sim=sim) as house:
            sim.lark.state.apps[APP.app_id] = replace(sim.app, hears_all=True)
            await sim.send_text(house.person, second, "hello?", mention_bot=True)
            await sim.send_text(house.person, first, "anyone?")
            assert await house.until_replies(1, first) == ["heard"]
            await house.settled()
            assert house.replies(second) == []


async def test_in_a_thread_the_bot_hears_where_it_has_a_word(tmp_path: Path) -> None:
    rules = replace(QUIET, group_policy="thread")
    script = [Reply("a word"), Reply("I am still here"), Reply("again")]
    async with LarkSim([APP], speed=100.0) as sim:
        sim.lark.state.apps[APP.app_id] = replace(sim.app, hears_all=True)
        (tmp_path / "one").mkdir()
        (tmp_path / "two").mkdir()
        async with rig(tmp_path / "one", script, rules, sim=sim) as house:
            root = await sim.send_text(house.person, house.group, "look", mention_bot=True)
            await house.until_replies(1, house.group)
            other = await sim.send_text(house.person, house.group, "unasked")
            await sim.send_text(house.person, house.group, "?", reply_to=other, in_thread=True)
            await sim.send_text(
                house.person, house.group, "more?", reply_to=root, in_thread=True, mention_bot=True
            )
            assert (await house.until_replies(2, house.group))[1] == "I am still here"
        async with rig(tmp_path / "two", [Reply("found it")], rules, sim=sim) as house:
            # another process, which must ask Lark whose thread it is
            await sim.send_text(house.person, house.group, "still?", reply_to=other, in_thread=True)
            await sim.send_text(house.person, house.group, "still?", reply_to=root, in_thread=True)
            assert (await house.until_replies(3, house.group))[2] == "found it"
            await house.settled()
            assert len(house.core.model.requests) == 1


async def test_in_a_group_only_operators_words_count(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        asker, boss = sim.people[:2]
        rules = replace(QUIET, operate=(boss.open_id,))
        async with rig(tmp_path, needs(COLOURS), rules, sim=sim) as house:
            await sim.send_text(asker, house.group, "paint it", mention_bot=True)
            [asked] = await open_questions(house, 1, house.group)
            card = await card_of(house, asked)
            await sim.send_text(asker, house.group, "2", reply_to=card, mention_bot=True)
            refusal = "Only operators can answer this question."
            assert await house.until_replies(1, house.group) == [refusal]
            assert await open_questions(house, 1, house.group) == [asked]
            await sim.send_text(boss, house.group, "2", mention_bot=True)
            assert (await house.until_replies(2, house.group))[1] == "over"
            assert "green" in results(house)
            stored = await house.core.house.gateway.queries.question(asked.question.id, LOCAL_OWNER)
            assert stored.answer is not None
            assert stored.answer.name == boss.name
            assert "question.refused" in await deeds(house)


async def test_an_operator_of_one_group_is_none_in_another(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        person, (first, second) = sim.people[0], sim.groups[:2]
        groups = {first.chat_id: GroupRules(operate=(person.open_id,))}
        rules = Rules([Reply(calls=[plan("do it")], when=When(results=0)), Reply(calls=[TOUCH])])
        async with rig(tmp_path, rules, replace(QUIET, groups=groups), sim=sim) as house:
            await sim.send_text(person, second, "touch it", mention_bot=True)
            [asked] = await open_questions(house, 1, second)
            await sim.send_text(person, second, "OK", mention_bot=True)
            assert "Only operators" in (await house.until_replies(1, second))[0]
            await sim.send_text(person, first, f"/approve {asked.question.id}", mention_bot=True)
            assert "Only operators" in (await house.until_replies(1, first))[0]
            await sim.send_text(
                sim.people[1], first, f"/approve {asked.question.id}", mention_bot=True
            )
            assert "No open question" in (await house.until_replies(2, first))[1]
            assert await open_questions(house, 1, second) == [asked]


# Answers that are written


@pytest.mark.parametrize(
    ("text", "ran"), [("OK", True), ("好的。", True), ("Y", True), ("不行", False), ("no!", False)]
)
async def test_the_exact_words_answer_a_question_about_calls(
    tmp_path: Path, text: str, ran: bool
) -> None:
    async with rig(tmp_path, needs(TOUCH), OPERATORS) as house:
        await house.say("touch it")
        await open_questions(house, 1)
        await house.say(text)
        assert await house.until_replies(1) == ["over"]
        assert ("Not run" not in results(house)) is ran


async def test_other_words_beside_an_approval_are_a_task_of_their_own(tmp_path: Path) -> None:
    async with rig(tmp_path, needs(TOUCH), OPERATORS) as house:
        await house.say("touch it")
        [asked] = await open_questions(house, 1)
        await house.say("OK, but what is the time?")
        assert await house.until_replies(1) == ["over"]  # the next reply of the script
        assert "what is the time" in json.dumps(house.core.model.requests[-1]["messages"])
        assert await open_questions(house, 1) == [asked]


async def test_a_quoted_question_is_the_one_that_is_answered(tmp_path: Path) -> None:
    ask = Rules(
        [
            Reply(calls=[plan("do it")], when=When(last_user="touch", results=0)),
            Reply(calls=[TOUCH], when=When(last_user="touch", results=1)),
            Reply(calls=[COLOURS], when=When(last_user="paint", results=0)),
            Reply("done"),
        ]
    )
    async with rig(tmp_path, ask, OPERATORS) as house:
        await house.say("touch the door")
        await open_questions(house, 1)
        await house.say("paint the wall")  # no exact word: a task beside the question about calls
        touch, paint = await open_questions(house, 2)
        await house.say("3", reply_to=await card_of(house, paint))
        assert await house.until_replies(1) == ["done"]
        assert "blue" in results(house)
        assert await open_questions(house, 1) == [touch]
        await house.say("ok", reply_to=await card_of(house, touch))
        await house.until_replies(2)
        assert await open_questions(house, 0) == []


@pytest.mark.parametrize(("text", "heard"), [("2", "green"), ("OK", "OK"), ("a dark one", "dark")])
async def test_in_a_direct_chat_whoever_gave_the_task_answers_its_questions(
    tmp_path: Path, text: str, heard: str
) -> None:
    async with rig(tmp_path, [Reply(calls=[COLOURS]), Reply("painted")]) as house:
        await house.say("paint it")
        await open_questions(house, 1)
        await house.say(text)
        assert await house.until_replies(1) == ["painted"]
        assert heard in results(house)


async def test_two_open_questions_are_not_answered_by_a_bare_yes(tmp_path: Path) -> None:
    ask = [
        Reply(calls=[plan("do it")], when=When(results=0)),
        Reply(calls=[TOUCH], when=When(results=1)),
        Reply("done", when=When(results=2)),
    ]
    async with rig(tmp_path, Rules(ask), OPERATORS) as house:
        await house.say("touch the door")
        await open_questions(house, 1)
        await house.say("/new")
        await house.until_replies(1)
        await house.say("touch the wall")
        one, two = await open_questions(house, 2)
        await house.say("OK")
        listed = (await house.until_replies(2))[1]
        assert "More than one question" in listed
        assert one.question.id[-6:] in listed
        assert two.question.id[-6:] in listed
        await house.say(f"/approve {two.question.id[-6:]}")
        assert (await house.until_replies(3))[2] == "done"
        assert await open_questions(house, 1) == [one]
        await house.say(f"/reject {one.question.id} not that one")
        await house.until_replies(4)
        assert "not that one" in results(house)


async def test_feedback_on_a_plan_has_it_planned_again_and_a_yes_begins_it(tmp_path: Path) -> None:
    script = [
        Reply(calls=[plan("dig", "plant")]),
        Reply(calls=[plan("plant")]),
        Reply("planted"),
    ]
    rules = replace(OPERATORS, plan_review="always")
    async with rig(tmp_path, script, rules) as house:
        await house.say("a garden")
        [first] = await open_questions(house, 1)
        await house.say("without digging")

        async def next_one() -> QuestionRecord | None:
            [found] = await open_questions(house, 1)
            return found if found.question.id != first.question.id else None

        second = await until(house, next_one)
        assert "<plan_feedback>" in results(house)
        assert "without digging" in results(house)
        assert second.question.plan is not None
        assert second.question.plan.version == 2
        await house.say("同意")
        assert await house.until_replies(1) == ["planted"]


async def test_a_late_yes_hears_who_was_first(tmp_path: Path) -> None:
    async with rig(tmp_path, needs(TOUCH), OPERATORS) as house:
        await house.say("touch it")
        [asked] = await open_questions(house, 1)
        card = await card_of(house, asked)
        await house.core.answer(asked.question.id, "reject", "not now")
        await house.until_replies(1)
        await house.say("OK", reply_to=card)
        said = (await house.until_replies(2))[1]
        assert said.startswith("Already answered by the owner on the web page")
        await house.say("why not?", reply_to=card)
        assert (await house.until_replies(3))[2] == "another"


async def test_an_expired_question_is_not_answered(tmp_path: Path) -> None:
    async with rig(tmp_path, needs(TOUCH), OPERATORS) as house:
        await house.say("touch it")
        [asked] = await open_questions(house, 1)
        card = await card_of(house, asked)
        with closing(sqlite3.connect(tmp_path / "larkspur.db")) as hand, hand:
            hand.execute("update questions set expires = '2026-01-01T00:00:00.000Z'")
        await house.say("yes", reply_to=card)
        assert "has expired. Nothing was run" in (await house.until_replies(1))[0]


# Commands


async def test_questions_and_tasks_are_listed(tmp_path: Path) -> None:
    async with rig(tmp_path, needs(TOUCH), OPERATORS) as house:
        for number, text in enumerate(("/questions", "/tasks", "/usage", "/approve"), 1):
            await house.say(text)
            await house.until_replies(number)
        assert house.replies() == [
            "No open questions.",
            "No tasks in this conversation yet.",
            "This conversation has no usage yet.",
            "No open questions.",
        ]
        await house.say("touch it")
        [asked] = await open_questions(house, 1)
        await house.say("/questions")
        listed = (await house.until_replies(5))[4]
        assert f"`{asked.question.id[-6:]}` approval: touch ran" in listed
        await house.say("/任务")
        assert "等待答复\uff1atouch it" in (await house.until_replies(6))[5]
        await house.say("/approve 0000-9")
        assert "No open question 0000-9" in (await house.until_replies(7))[6]
        await house.say("/reject too risky")
        assert (await house.until_replies(8))[7] == "over"
        assert "too risky" in results(house)
        await house.say("/usage")
        assert "input tokens and" in (await house.until_replies(9))[8]


async def test_plan_review_is_turned_on_for_what_follows(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("one")]), Reply("first"), Reply(calls=[plan("two")]), Reply("2nd")]
    async with rig(tmp_path, script, OPERATORS) as house:
        await house.say("/plan on")
        assert "Every plan" in (await house.until_replies(1))[0]
        await house.say("/plan maybe")
        assert "`/plan on` or `/plan off`" in (await house.until_replies(2))[1]
        await house.say("/new")  # it is the chat's wish, not the conversation's
        await house.until_replies(3)
        await house.say("do it")
        [asked] = await open_questions(house, 1)
        assert asked.question.kind == "plan"
        await house.say("/approve")
        assert (await house.until_replies(4))[3] == "first"
        await house.say("/计划 关")
        assert "无需审阅" in (await house.until_replies(5))[4]
        await house.say("again")
        assert (await house.until_replies(6))[5] == "2nd"


async def test_a_chat_has_a_model_of_its_own(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("one"), Reply("two")], OPERATORS) as house:
        for number, text in enumerate(
            ("/model", "/model claude-y", "hello", "/model two words", "/model default", "hi"), 1
        ):
            await house.say(text)
            await house.until_replies(number)
        assert [each["model"] for each in house.core.model.requests] == ["claude-y", "claude-x"]
        assert "claude-y" in house.replies()[1]
        assert "the name of a model" in house.replies()[3]


@pytest.mark.parametrize("text", ["/plan on", "/model claude-y"])
async def test_only_operators_change_how_a_chat_works(tmp_path: Path, text: str) -> None:
    async with rig(tmp_path, [Reply("as ever")]) as house:
        await house.say(text)
        assert await house.until_replies(1) == ["Only operators can change this."]
        await house.say("hello")
        await house.until_replies(2)
        assert house.core.model.requests[0]["model"] == "claude-x"


async def test_the_settings_review_is_not_turned_off_by_an_operator(tmp_path: Path) -> None:
    rules = replace(OPERATORS, plan_review="complex")
    async with rig(tmp_path, [], rules) as house:
        await house.say("/plan off")
        assert "Complex plans" in (await house.until_replies(1))[0]


async def test_a_wish_is_of_one_chat(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("direct")], OPERATORS) as house:
        await house.sim.send_text(house.person, house.group, "/model claude-y", mention_bot=True)
        await house.until_replies(1, house.group)
        await house.say("hello")
        await house.until_replies(1)
        assert house.core.model.requests[0]["model"] == "claude-x"

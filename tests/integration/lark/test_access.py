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
from internal.config.chat import ChatAccess, ChatGroup
from internal.simulators.lark.model import Chat
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Reply, Rules, When, seen_in
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, QUIET, LarkRig, open_rig

T = TypeVar("T")
OPERATORS = with_values(QUIET, access=ChatAccess(operate=("*",)))
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


async def open_questions(
    rig: LarkRig, count: int, chat: Chat | None = None
) -> list[QuestionRecord]:
    """Return the open questions of a chat as soon as there are so many and their cards are known.

    Cards are known to us a moment after they are seen.
    """
    gateway, stores = rig.core.house.gateway, rig.core.house.stores
    name = chat_name("lark", APP.app_id, (chat or rig.dm).chat_id)

    async def found() -> list[QuestionRecord] | None:
        open_ = await gateway.queries.open_questions(name)
        keys = [f"{each.question.id}:asked" for each in open_]
        ids = [
            await rig.core.house.database.read(partial(stores.outbox.get_remote_id, key))
            for key in keys
        ]
        return open_ if len(open_) == count and all(ids) else None

    return await until(rig, found)


async def until(rig: LarkRig, wanted: Callable[[], Awaitable[T | None]]) -> T:
    async with asyncio.timeout(20):
        while (found := await wanted()) is None:
            await rig.sim.lark.changed_within(0.02)
    return found


async def card_of(rig: LarkRig, asked: QuestionRecord) -> str:
    """Return the message that shows a question."""
    stores, key = rig.core.house.stores, f"{asked.question.id}:asked"
    return await rig.core.house.database.read(partial(stores.outbox.get_remote_id, key))


async def deeds(rig: LarkRig) -> list[str]:
    found = await rig.core.house.gateway.queries.audit_entries(LOCAL_OWNER)
    return [deed.action for deed in reversed(found)]


def results(rig: LarkRig) -> str:
    """Return what the model was given last as a tool's result."""
    return seen_in(rig.core.model.requests[-1]).last_result


async def code_for(rig: LarkRig, role: str = "operate") -> str:
    access = rig.core.house.gateway.access
    return (await access.create_code(role, LOCAL_OWNER, "cli")).code  # type: ignore[arg-type]  # a role


# Pairing


async def test_a_code_makes_an_operator_who_may_then_approve(tmp_path: Path) -> None:
    async with open_rig(
        tmp_path, needs(TOUCH), with_values(QUIET, access=ChatAccess(talk=()))
    ) as rig:
        await rig.say("touch it")
        assert "permission to use this bot" in (await rig.until_replies(1))[0]
        code = await code_for(rig)
        await rig.say(f"/pair {code.lower()}")
        assert "answer approval questions" in (await rig.until_replies(2))[1]
        await rig.say("touch it")
        await open_questions(rig, 1)
        said = await rig.say("OK")
        assert (await rig.until_replies(3))[2] == "over"
        await rig.sim.until(lambda _: rig.sim.lark.state.messages[said].reactions)
        people = await rig.core.house.gateway.queries.people(LOCAL_OWNER)
        assert [(one.principal, one.name, one.role) for one in people] == [
            (f"lark:{APP.app_id}:{rig.person.open_id}", rig.person.name, "operate")
        ]


async def test_wrong_used_and_expired_codes_give_nothing(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim, open_rig(tmp_path, [], QUIET, sim=sim) as rig:
        one, two = sim.people[:2]
        code, late = await code_for(rig), "ABCD2345"
        people, past = rig.core.house.stores.roles, "2026-01-01T00:00:00.000Z"
        digest = hashlib.sha256(late.encode()).hexdigest()
        await rig.core.house.database.write(
            partial(people.add_pairing_code, digest, "owner", now=past, expires=past)
        )
        for number, text in enumerate(("/pair", "/pair 22222222", f"/配对 {late}"), 1):
            await rig.say(text)
            said = (await rig.until_replies(number))[-1]
            assert "larkspur pair" in said
        await rig.say(f"/pair {code}")
        assert "Linked" in (await rig.until_replies(4))[3]
        await sim.send_text(two, sim.dm(two), f"/pair {code}")
        assert "already used" in (await rig.until_replies(1, sim.dm(two)))[0]
        access = rig.core.house.gateway.access
        assert await access.get_rights(f"lark:{APP.app_id}:{two.open_id}") == frozenset()
        assert await access.get_rights(f"lark:{APP.app_id}:{one.open_id}") == {"talk", "operate"}
        assert (await deeds(rig)).count("pairing.refused") == 3


async def test_after_five_wrong_codes_the_right_one_must_wait(tmp_path: Path) -> None:
    async with open_rig(tmp_path, []) as rig:
        rig.sim.set_faults(limits=False)
        code = await code_for(rig)
        for number in range(5):
            await rig.say("/pair 22222222")
            await rig.until_replies(number + 1)
        await rig.say(f"/pair {code}")
        assert "in ten minutes" in (await rig.until_replies(6))[5]
        rights = rig.core.house.gateway.access.get_rights
        assert await rights(f"lark:{APP.app_id}:{rig.person.open_id}") == frozenset()


async def test_a_code_posted_in_a_group_is_invalid(tmp_path: Path) -> None:
    async with open_rig(tmp_path, []) as rig:
        code = await code_for(rig)
        await rig.sim.send_text(rig.person, rig.group, f"/pair {code}", mention_bot=True)
        assert "direct chat" in (await rig.until_replies(1, rig.group))[0]
        await rig.say(f"/pair {code}")
        assert "already used" in (await rig.until_replies(1))[0]


async def test_a_removed_role_takes_effect_at_once(tmp_path: Path) -> None:
    async with open_rig(tmp_path, needs(TOUCH)) as rig:
        await rig.say(f"/pair {await code_for(rig)}")
        await rig.until_replies(1)
        await rig.say("touch it")
        await open_questions(rig, 1)
        who = f"lark:{APP.app_id}:{rig.person.open_id}"
        await rig.core.house.gateway.access.remove_role(who, LOCAL_OWNER, "web")
        await rig.say("OK")
        assert "Only operators" in (await rig.until_replies(2))[1]
        await open_questions(rig, 1)
        assert len(rig.core.model.requests) == 2


# Groups


async def test_each_group_has_its_own_policy(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        first, second = sim.groups[:2]
        groups = {first.chat_id: ChatGroup(policy="open"), second.chat_id: ChatGroup(policy="off")}
        settings = with_values(QUIET, groups=groups)
        async with open_rig(tmp_path, [Reply("heard"), Reply("never")], settings, sim=sim) as rig:
            sim.lark.state.apps[APP.app_id] = replace(sim.app, hears_all=True)
            await sim.send_text(rig.person, second, "hello?", mention_bot=True)
            await sim.send_text(rig.person, first, "anyone?")
            assert await rig.until_replies(1, first) == ["heard"]
            await rig.settled()
            assert rig.replies(second) == []


async def test_in_a_thread_the_bot_answers_where_it_has_posted(tmp_path: Path) -> None:
    settings = with_values(QUIET, group_policy="thread")
    script = [Reply("a word"), Reply("I am still here"), Reply("again")]
    async with LarkSim([APP], speed=100.0) as sim:
        sim.lark.state.apps[APP.app_id] = replace(sim.app, hears_all=True)
        (tmp_path / "one").mkdir()
        (tmp_path / "two").mkdir()
        async with open_rig(tmp_path / "one", script, settings, sim=sim) as rig:
            root = await sim.send_text(rig.person, rig.group, "look", mention_bot=True)
            await rig.until_replies(1, rig.group)
            other = await sim.send_text(rig.person, rig.group, "unasked")
            await sim.send_text(rig.person, rig.group, "?", reply_to=other, in_thread=True)
            await sim.send_text(
                rig.person, rig.group, "more?", reply_to=root, in_thread=True, mention_bot=True
            )
            assert (await rig.until_replies(2, rig.group))[1] == "I am still here"
        async with open_rig(tmp_path / "two", [Reply("found it")], settings, sim=sim) as rig:
            # another process, which must ask Lark whose thread it is
            await sim.send_text(rig.person, rig.group, "still?", reply_to=other, in_thread=True)
            await sim.send_text(rig.person, rig.group, "still?", reply_to=root, in_thread=True)
            assert (await rig.until_replies(3, rig.group))[2] == "found it"
            await rig.settled()
            assert len(rig.core.model.requests) == 1


async def test_in_a_group_only_operators_may_answer(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        asker, boss = sim.people[:2]
        settings = with_values(QUIET, access=ChatAccess(operate=(boss.open_id,)))
        async with open_rig(tmp_path, needs(COLOURS), settings, sim=sim) as rig:
            await sim.send_text(asker, rig.group, "paint it", mention_bot=True)
            [asked] = await open_questions(rig, 1, rig.group)
            card = await card_of(rig, asked)
            await sim.send_text(asker, rig.group, "2", reply_to=card, mention_bot=True)
            refusal = "Only operators can answer this question."
            assert await rig.until_replies(1, rig.group) == [refusal]
            assert await open_questions(rig, 1, rig.group) == [asked]
            await sim.send_text(boss, rig.group, "2", mention_bot=True)
            assert (await rig.until_replies(2, rig.group))[1] == "over"
            assert "green" in results(rig)
            stored = await rig.core.house.gateway.queries.question(asked.question.id, LOCAL_OWNER)
            assert stored.answer is not None
            assert stored.answer.name == boss.name
            assert "question.refused" in await deeds(rig)


async def test_an_operator_of_one_group_has_no_rights_in_another(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        person, (first, second) = sim.people[0], sim.groups[:2]
        groups = {first.chat_id: ChatGroup(operate=(person.open_id,))}
        rules = Rules([Reply(calls=[plan("do it")], when=When(results=0)), Reply(calls=[TOUCH])])
        async with open_rig(tmp_path, rules, with_values(QUIET, groups=groups), sim=sim) as rig:
            await sim.send_text(person, second, "touch it", mention_bot=True)
            [asked] = await open_questions(rig, 1, second)
            await sim.send_text(person, second, "OK", mention_bot=True)
            assert "Only operators" in (await rig.until_replies(1, second))[0]
            await sim.send_text(person, first, f"/approve {asked.question.id}", mention_bot=True)
            assert "Only operators" in (await rig.until_replies(1, first))[0]
            await sim.send_text(
                sim.people[1], first, f"/approve {asked.question.id}", mention_bot=True
            )
            assert "No open question" in (await rig.until_replies(2, first))[1]
            assert await open_questions(rig, 1, second) == [asked]


# Answers that are written


@pytest.mark.parametrize(
    ("text", "ran"), [("OK", True), ("好的。", True), ("Y", True), ("不行", False), ("no!", False)]
)
async def test_the_exact_words_answer_a_question_about_calls(
    tmp_path: Path, text: str, ran: bool
) -> None:
    async with open_rig(tmp_path, needs(TOUCH), OPERATORS) as rig:
        await rig.say("touch it")
        await open_questions(rig, 1)
        await rig.say(text)
        assert await rig.until_replies(1) == ["over"]
        assert ("Not run" not in results(rig)) is ran


async def test_other_words_beside_an_approval_are_a_task_of_their_own(tmp_path: Path) -> None:
    async with open_rig(tmp_path, needs(TOUCH), OPERATORS) as rig:
        await rig.say("touch it")
        [asked] = await open_questions(rig, 1)
        await rig.say("OK, but what is the time?")
        assert await rig.until_replies(1) == ["over"]  # the next reply of the script
        assert "what is the time" in json.dumps(rig.core.model.requests[-1]["messages"])
        assert await open_questions(rig, 1) == [asked]


async def test_a_quoted_question_is_the_one_that_is_answered(tmp_path: Path) -> None:
    ask = Rules(
        [
            Reply(calls=[plan("do it")], when=When(last_user="touch", results=0)),
            Reply(calls=[TOUCH], when=When(last_user="touch", results=1)),
            Reply(calls=[COLOURS], when=When(last_user="paint", results=0)),
            Reply("done"),
        ]
    )
    async with open_rig(tmp_path, ask, OPERATORS) as rig:
        await rig.say("touch the door")
        await open_questions(rig, 1)
        await rig.say("paint the wall")  # no exact word: a task beside the question about calls
        touch, paint = await open_questions(rig, 2)
        await rig.say("3", reply_to=await card_of(rig, paint))
        assert await rig.until_replies(1) == ["done"]
        assert "blue" in results(rig)
        assert await open_questions(rig, 1) == [touch]
        await rig.say("ok", reply_to=await card_of(rig, touch))
        await rig.until_replies(2)
        assert await open_questions(rig, 0) == []


@pytest.mark.parametrize(("text", "heard"), [("2", "green"), ("OK", "OK"), ("a dark one", "dark")])
async def test_in_a_direct_chat_the_asker_answers_questions(
    tmp_path: Path, text: str, heard: str
) -> None:
    async with open_rig(tmp_path, [Reply(calls=[COLOURS]), Reply("painted")]) as rig:
        await rig.say("paint it")
        await open_questions(rig, 1)
        await rig.say(text)
        assert await rig.until_replies(1) == ["painted"]
        assert heard in results(rig)


async def test_two_open_questions_are_not_answered_by_a_bare_yes(tmp_path: Path) -> None:
    ask = [
        Reply(calls=[plan("do it")], when=When(results=0)),
        Reply(calls=[TOUCH], when=When(results=1)),
        Reply("done", when=When(results=2)),
    ]
    async with open_rig(tmp_path, Rules(ask), OPERATORS) as rig:
        await rig.say("touch the door")
        await open_questions(rig, 1)
        await rig.say("/new")
        await rig.until_replies(1)
        await rig.say("touch the wall")
        one, two = await open_questions(rig, 2)
        await rig.say("OK")
        listed = (await rig.until_replies(2))[1]
        assert "More than one question" in listed
        assert one.question.id[-6:] in listed
        assert two.question.id[-6:] in listed
        await rig.say(f"/approve {two.question.id[-6:]}")
        assert (await rig.until_replies(3))[2] == "done"
        assert await open_questions(rig, 1) == [one]
        await rig.say(f"/reject {one.question.id} not that one")
        await rig.until_replies(4)
        assert "not that one" in results(rig)


async def test_feedback_changes_a_plan_and_an_approval_starts_it(tmp_path: Path) -> None:
    script = [
        Reply(calls=[plan("dig", "plant")]),
        Reply(calls=[plan("plant")]),
        Reply("planted"),
    ]
    settings = with_values(OPERATORS, plan_review="always")
    async with open_rig(tmp_path, script, settings) as rig:
        await rig.say("a garden")
        [first] = await open_questions(rig, 1)
        await rig.say("without digging")

        async def next_one() -> QuestionRecord | None:
            [found] = await open_questions(rig, 1)
            return found if found.question.id != first.question.id else None

        second = await until(rig, next_one)
        assert "<plan_feedback>" in results(rig)
        assert "without digging" in results(rig)
        assert second.question.plan is not None
        assert second.question.plan.version == 2
        await rig.say("同意")
        assert await rig.until_replies(1) == ["planted"]


async def test_a_late_answer_names_the_first(tmp_path: Path) -> None:
    async with open_rig(tmp_path, needs(TOUCH), OPERATORS) as rig:
        await rig.say("touch it")
        [asked] = await open_questions(rig, 1)
        card = await card_of(rig, asked)
        await rig.core.answer(asked.question.id, "reject", "not now")
        await rig.until_replies(1)
        await rig.say("OK", reply_to=card)
        said = (await rig.until_replies(2))[1]
        assert said.startswith("Already answered by the owner on the web page")
        await rig.say("why not?", reply_to=card)
        assert (await rig.until_replies(3))[2] == "another"


async def test_an_expired_question_is_not_answered(tmp_path: Path) -> None:
    async with open_rig(tmp_path, needs(TOUCH), OPERATORS) as rig:
        await rig.say("touch it")
        [asked] = await open_questions(rig, 1)
        card = await card_of(rig, asked)
        with closing(sqlite3.connect(tmp_path / "larkspur.db")) as hand, hand:
            hand.execute("update questions set expires = '2026-01-01T00:00:00.000Z'")
        await rig.say("yes", reply_to=card)
        assert "has expired. Nothing was run" in (await rig.until_replies(1))[0]


# Commands


async def test_questions_and_tasks_are_listed(tmp_path: Path) -> None:
    async with open_rig(tmp_path, needs(TOUCH), OPERATORS) as rig:
        for number, text in enumerate(("/questions", "/tasks", "/usage", "/approve"), 1):
            await rig.say(text)
            await rig.until_replies(number)
        assert rig.replies() == [
            "No open questions.",
            "No tasks in this conversation yet.",
            "This conversation has no usage yet.",
            "No open questions.",
        ]
        await rig.say("touch it")
        [asked] = await open_questions(rig, 1)
        await rig.say("/questions")
        listed = (await rig.until_replies(5))[4]
        assert f"`{asked.question.id[-6:]}` approval: touch ran" in listed
        await rig.say("/任务")
        assert "等待答复\uff1atouch it" in (await rig.until_replies(6))[5]
        await rig.say("/approve 0000-9")
        assert "No open question 0000-9" in (await rig.until_replies(7))[6]
        await rig.say("/reject too risky")
        assert (await rig.until_replies(8))[7] == "over"
        assert "too risky" in results(rig)
        await rig.say("/usage")
        assert "input tokens and" in (await rig.until_replies(9))[8]


async def test_plan_review_is_turned_on_for_what_follows(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("one")]), Reply("first"), Reply(calls=[plan("two")]), Reply("2nd")]
    async with open_rig(tmp_path, script, OPERATORS) as rig:
        await rig.say("/plan on")
        assert "Every plan" in (await rig.until_replies(1))[0]
        await rig.say("/plan maybe")
        assert "`/plan on` or `/plan off`" in (await rig.until_replies(2))[1]
        await rig.say("/new")  # it is the chat's wish, not the conversation's
        await rig.until_replies(3)
        await rig.say("do it")
        [asked] = await open_questions(rig, 1)
        assert asked.question.kind == "plan"
        await rig.say("/approve")
        assert (await rig.until_replies(4))[3] == "first"
        await rig.say("/计划 关")
        assert "无需审阅" in (await rig.until_replies(5))[4]
        await rig.say("again")
        assert (await rig.until_replies(6))[5] == "2nd"


async def test_a_chat_can_have_its_own_model(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("one"), Reply("two")], OPERATORS) as rig:
        for number, text in enumerate(
            ("/model", "/model claude-y", "hello", "/model two words", "/model default", "hi"), 1
        ):
            await rig.say(text)
            await rig.until_replies(number)
        assert [each["model"] for each in rig.core.model.requests] == ["claude-y", "claude-x"]
        assert "claude-y" in rig.replies()[1]
        assert "the name of a model" in rig.replies()[3]


@pytest.mark.parametrize("text", ["/plan on", "/model claude-y"])
async def test_only_operators_change_the_settings_of_a_chat(tmp_path: Path, text: str) -> None:
    async with open_rig(tmp_path, [Reply("as ever")]) as rig:
        await rig.say(text)
        assert await rig.until_replies(1) == ["Only operators can change this."]
        await rig.say("hello")
        await rig.until_replies(2)
        assert rig.core.model.requests[0]["model"] == "claude-x"


async def test_an_operator_cannot_turn_off_a_configured_review(tmp_path: Path) -> None:
    settings = with_values(OPERATORS, plan_review="complex")
    async with open_rig(tmp_path, [], settings) as rig:
        await rig.say("/plan off")
        assert "Complex plans" in (await rig.until_replies(1))[0]


async def test_settings_apply_to_one_chat(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("direct")], OPERATORS) as rig:
        await rig.sim.send_text(rig.person, rig.group, "/model claude-y", mention_bot=True)
        await rig.until_replies(1, rig.group)
        await rig.say("hello")
        await rig.until_replies(1)
        assert rig.core.model.requests[0]["model"] == "claude-x"

"""Rights in Lark and written answers, through the real SDK's connection."""

import hashlib
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.questions import QuestionRecord
from internal.settings.chat import ChatAccess, ChatGroup
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Reply, Rules, When
from tests.support.chat_settings import with_values
from tests.support.lark_chats import TOUCH, card_of, code_for, needs, open_questions, results
from tests.support.lark_gateway import APP, QUIET, LarkGateway, open_lark_gateway
from tests.support.lark_runs import until

OPERATORS = with_values(QUIET, access=ChatAccess(operate=("*",)))
COLOURS = Call("request_user", {"question": "Which colour?", "options": ["red", "green", "blue"]})


async def audit_actions(lark: LarkGateway) -> list[str]:
    found = await lark.core.services.gateway.queries.audit_entries(LOCAL_OWNER)
    return [entry.action for entry in reversed(found)]


# Pairing


async def test_a_code_makes_an_operator_who_may_then_approve(tmp_path: Path) -> None:
    async with open_lark_gateway(
        tmp_path, needs(TOUCH), with_values(QUIET, access=ChatAccess(talk=()))
    ) as lark:
        await lark.say("touch it")
        assert "permission to use this bot" in (await lark.until_replies(1))[0]
        code = await code_for(lark)
        await lark.say(f"/pair {code.lower()}")
        assert "answer approval questions" in (await lark.until_replies(2))[1]
        await lark.say("touch it")
        await open_questions(lark, 1)
        said = await lark.say("OK")
        assert (await lark.until_replies(3))[2] == "over"
        await lark.sim.until(lambda _: lark.sim.lark.state.messages[said].reactions)
        people = await lark.core.services.gateway.queries.people(LOCAL_OWNER)
        assert [(one.principal, one.name, one.role) for one in people] == [
            (f"lark:{APP.app_id}:{lark.person.open_id}", lark.person.name, "operate")
        ]


async def test_wrong_used_and_expired_codes_grant_no_role(tmp_path: Path) -> None:
    async with (
        LarkSim([APP], speed=100.0) as sim,
        open_lark_gateway(tmp_path, [], QUIET, sim=sim) as lark,
    ):
        one, two = sim.people[:2]
        code, late = await code_for(lark), "ABCD2345"
        people, past = lark.core.services.stores.roles, "2026-01-01T00:00:00.000Z"
        digest = hashlib.sha256(late.encode()).hexdigest()
        await lark.core.services.database.write(
            partial(people.add_pairing_code, digest, "owner", now=past, expires=past)
        )
        for number, text in enumerate(("/pair", "/pair 22222222", f"/配对 {late}"), 1):
            await lark.say(text)
            said = (await lark.until_replies(number))[-1]
            assert "larkspur pair" in said
        await lark.say(f"/pair {code}")
        assert "Linked" in (await lark.until_replies(4))[3]
        await sim.send_text(two, sim.dm(two), f"/pair {code}")
        assert "already used" in (await lark.until_replies(1, sim.dm(two)))[0]
        access = lark.core.services.gateway.access
        assert await access.get_rights(f"lark:{APP.app_id}:{two.open_id}") == frozenset()
        assert await access.get_rights(f"lark:{APP.app_id}:{one.open_id}") == {"talk", "operate"}
        assert (await audit_actions(lark)).count("pairing.refused") == 3


async def test_after_five_wrong_codes_the_right_one_must_wait(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, []) as lark:
        lark.sim.set_faults(limits=False)
        code = await code_for(lark)
        for number in range(5):
            await lark.say("/pair 22222222")
            await lark.until_replies(number + 1)
        await lark.say(f"/pair {code}")
        assert "in ten minutes" in (await lark.until_replies(6))[5]
        rights = lark.core.services.gateway.access.get_rights
        assert await rights(f"lark:{APP.app_id}:{lark.person.open_id}") == frozenset()


async def test_a_code_posted_in_a_group_is_invalid(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, []) as lark:
        code = await code_for(lark)
        await lark.sim.send_text(lark.person, lark.group, f"/pair {code}", mention_bot=True)
        assert "direct chat" in (await lark.until_replies(1, lark.group))[0]
        await lark.say(f"/pair {code}")
        assert "already used" in (await lark.until_replies(1))[0]


async def test_a_removed_role_takes_effect_at_once(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, needs(TOUCH)) as lark:
        await lark.say(f"/pair {await code_for(lark)}")
        await lark.until_replies(1)
        await lark.say("touch it")
        await open_questions(lark, 1)
        who = f"lark:{APP.app_id}:{lark.person.open_id}"
        await lark.core.services.gateway.access.remove_role(who, LOCAL_OWNER, "web")
        await lark.say("OK")
        assert "Only operators" in (await lark.until_replies(2))[1]
        await open_questions(lark, 1)
        assert len(lark.core.model.requests) == 2


# Groups


async def test_each_group_has_its_own_policy(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        first, second = sim.groups[:2]
        groups = {first.chat_id: ChatGroup(policy="open"), second.chat_id: ChatGroup(policy="off")}
        settings = with_values(QUIET, groups=groups)
        async with open_lark_gateway(
            tmp_path, [Reply("heard"), Reply("never")], settings, sim=sim
        ) as lark:
            sim.lark.state.apps[APP.app_id] = replace(sim.app, hears_all=True)
            await sim.send_text(lark.person, second, "hello?", mention_bot=True)
            await sim.send_text(lark.person, first, "anyone?")
            assert await lark.until_replies(1, first) == ["heard"]
            await lark.settled()
            assert lark.replies(second) == []


async def test_in_a_thread_the_bot_answers_where_it_has_posted(tmp_path: Path) -> None:
    settings = with_values(QUIET, group_policy="thread")
    script = [Reply("a word"), Reply("I am still here"), Reply("again")]
    async with LarkSim([APP], speed=100.0) as sim:
        sim.lark.state.apps[APP.app_id] = replace(sim.app, hears_all=True)
        (tmp_path / "one").mkdir()
        (tmp_path / "two").mkdir()
        async with open_lark_gateway(tmp_path / "one", script, settings, sim=sim) as lark:
            root = await sim.send_text(lark.person, lark.group, "look", mention_bot=True)
            await lark.until_replies(1, lark.group)
            other = await sim.send_text(lark.person, lark.group, "unasked")
            await sim.send_text(lark.person, lark.group, "?", reply_to=other, in_thread=True)
            await sim.send_text(
                lark.person, lark.group, "more?", reply_to=root, in_thread=True, mention_bot=True
            )
            assert (await lark.until_replies(2, lark.group))[1] == "I am still here"
        async with open_lark_gateway(
            tmp_path / "two", [Reply("found it")], settings, sim=sim
        ) as lark:
            # another process, which must ask Lark whose thread it is
            await sim.send_text(lark.person, lark.group, "still?", reply_to=other, in_thread=True)
            await sim.send_text(lark.person, lark.group, "still?", reply_to=root, in_thread=True)
            assert (await lark.until_replies(3, lark.group))[2] == "found it"
            await lark.settled()
            assert len(lark.core.model.requests) == 1


async def test_in_a_group_only_operators_may_answer(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        asker, boss = sim.people[:2]
        settings = with_values(QUIET, access=ChatAccess(operate=(boss.open_id,)))
        async with open_lark_gateway(tmp_path, needs(COLOURS), settings, sim=sim) as lark:
            await sim.send_text(asker, lark.group, "paint it", mention_bot=True)
            [asked] = await open_questions(lark, 1, lark.group)
            card = await card_of(lark, asked)
            await sim.send_text(asker, lark.group, "2", reply_to=card, mention_bot=True)
            refusal = "Only operators can answer this question."
            assert await lark.until_replies(1, lark.group) == [refusal]
            assert await open_questions(lark, 1, lark.group) == [asked]
            await sim.send_text(boss, lark.group, "2", mention_bot=True)
            assert (await lark.until_replies(2, lark.group))[1] == "over"
            assert "green" in results(lark)
            stored = await lark.core.services.gateway.queries.question(
                asked.question.id, LOCAL_OWNER
            )
            assert stored.answer is not None
            assert stored.answer.name == boss.name
            assert "question.refused" in await audit_actions(lark)


async def test_an_operator_of_one_group_has_no_rights_in_another(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        person, (first, second) = sim.people[0], sim.groups[:2]
        groups = {first.chat_id: ChatGroup(operate=(person.open_id,))}
        rules = Rules([Reply(calls=[plan("do it")], when=When(results=0)), Reply(calls=[TOUCH])])
        async with open_lark_gateway(
            tmp_path, rules, with_values(QUIET, groups=groups), sim=sim
        ) as lark:
            await sim.send_text(person, second, "touch it", mention_bot=True)
            [asked] = await open_questions(lark, 1, second)
            await sim.send_text(person, second, "OK", mention_bot=True)
            assert "Only operators" in (await lark.until_replies(1, second))[0]
            await sim.send_text(person, first, f"/approve {asked.question.id}", mention_bot=True)
            assert "Only operators" in (await lark.until_replies(1, first))[0]
            await sim.send_text(
                sim.people[1], first, f"/approve {asked.question.id}", mention_bot=True
            )
            assert "No open question" in (await lark.until_replies(2, first))[1]
            assert await open_questions(lark, 1, second) == [asked]


# Answers that are written


async def test_isolated_commands_run_unasked_for_everybody_who_may_talk(tmp_path: Path) -> None:
    environ = {"LARKSPUR_SANDBOX__PROVIDER": "auto"}
    async with open_lark_gateway(tmp_path, needs(TOUCH), environ=environ) as lark:
        await lark.say("touch it")
        assert await lark.until_replies(1) == ["over"]
    assert len(list((tmp_path / "workspaces").glob("*/ran"))) == 1


@pytest.mark.parametrize(
    ("text", "ran"), [("OK", True), ("好的。", True), ("Y", True), ("不行", False), ("no!", False)]
)
async def test_only_exact_approval_words_answer_a_question_about_calls(
    tmp_path: Path, text: str, ran: bool
) -> None:
    async with open_lark_gateway(tmp_path, needs(TOUCH), OPERATORS) as lark:
        await lark.say("touch it")
        await open_questions(lark, 1)
        await lark.say(text)
        assert await lark.until_replies(1) == ["over"]
        assert ("Not run" not in results(lark)) is ran


async def test_an_approval_word_with_other_text_is_a_new_task(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, needs(TOUCH), OPERATORS) as lark:
        await lark.say("touch it")
        [asked] = await open_questions(lark, 1)
        await lark.say("OK, but what is the time?")
        assert await lark.until_replies(1) == ["over"]  # the next reply of the script
        assert "what is the time" in json.dumps(lark.core.model.requests[-1]["messages"])
        assert await open_questions(lark, 1) == [asked]


async def test_a_quoted_question_is_the_one_that_is_answered(tmp_path: Path) -> None:
    ask = Rules(
        [
            Reply(calls=[plan("do it")], when=When(last_user="touch", results=0)),
            Reply(calls=[TOUCH], when=When(last_user="touch", results=1)),
            Reply(calls=[COLOURS], when=When(last_user="paint", results=0)),
            Reply("done"),
        ]
    )
    async with open_lark_gateway(tmp_path, ask, OPERATORS) as lark:
        await lark.say("touch the door")
        await open_questions(lark, 1)
        await lark.say("paint the wall")  # no exact word: a task beside the question about calls
        touch, paint = await open_questions(lark, 2)
        await lark.say("3", reply_to=await card_of(lark, paint))
        assert await lark.until_replies(1) == ["done"]
        assert "blue" in results(lark)
        assert await open_questions(lark, 1) == [touch]
        await lark.say("ok", reply_to=await card_of(lark, touch))
        await lark.until_replies(2)
        assert await open_questions(lark, 0) == []


@pytest.mark.parametrize(("text", "heard"), [("2", "green"), ("OK", "OK"), ("a dark one", "dark")])
async def test_in_a_direct_chat_the_asker_answers_questions(
    tmp_path: Path, text: str, heard: str
) -> None:
    async with open_lark_gateway(tmp_path, [Reply(calls=[COLOURS]), Reply("painted")]) as lark:
        await lark.say("paint it")
        await open_questions(lark, 1)
        await lark.say(text)
        assert await lark.until_replies(1) == ["painted"]
        assert heard in results(lark)


async def test_two_open_questions_are_not_answered_by_a_bare_yes(tmp_path: Path) -> None:
    ask = [
        Reply(calls=[plan("do it")], when=When(results=0)),
        Reply(calls=[TOUCH], when=When(results=1)),
        Reply("done", when=When(results=2)),
    ]
    async with open_lark_gateway(tmp_path, Rules(ask), OPERATORS) as lark:
        await lark.say("touch the door")
        await open_questions(lark, 1)
        await lark.say("/new")
        await lark.until_replies(1)
        await lark.say("touch the wall")
        one, two = await open_questions(lark, 2)
        await lark.say("OK")
        listed = (await lark.until_replies(2))[1]
        assert "Which question do you mean?" in listed
        assert one.question.id[-6:] in listed
        assert two.question.id[-6:] in listed
        await lark.say(f"/approve {two.question.id[-6:]}")
        assert (await lark.until_replies(3))[2] == "done"
        assert await open_questions(lark, 1) == [one]
        await lark.say(f"/reject {one.question.id} not that one")
        await lark.until_replies(4)
        assert "not that one" in results(lark)


async def test_feedback_changes_a_plan_and_an_approval_starts_it(tmp_path: Path) -> None:
    script = [
        Reply(calls=[plan("dig", "plant")]),
        Reply(calls=[plan("plant")]),
        Reply("planted"),
    ]
    settings = with_values(OPERATORS, plan_review="always")
    async with open_lark_gateway(tmp_path, script, settings) as lark:
        await lark.say("a garden")
        [first] = await open_questions(lark, 1)
        await lark.say("without digging")

        async def next_one() -> QuestionRecord | None:
            [found] = await open_questions(lark, 1)
            return found if found.question.id != first.question.id else None

        second = await until(lark, next_one)
        assert "<plan_feedback>" in results(lark)
        assert "without digging" in results(lark)
        assert second.question.plan is not None
        assert second.question.plan.version == 2
        await lark.say("同意")
        assert await lark.until_replies(1) == ["planted"]


async def test_a_late_answer_names_the_first(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, needs(TOUCH), OPERATORS) as lark:
        await lark.say("touch it")
        [asked] = await open_questions(lark, 1)
        card = await card_of(lark, asked)
        await lark.core.answer(asked.question.id, "reject", "not now")
        await lark.until_replies(1)
        await lark.say("OK", reply_to=card)
        said = (await lark.until_replies(2))[1]
        assert said.startswith("Already answered by the owner on the web page")
        await lark.say("why not?", reply_to=card)
        assert (await lark.until_replies(3))[2] == "another"


async def test_an_expired_question_is_not_answered(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, needs(TOUCH), OPERATORS) as lark:
        await lark.say("touch it")
        [asked] = await open_questions(lark, 1)
        card = await card_of(lark, asked)
        with closing(sqlite3.connect(tmp_path / "larkspur.db")) as hand, hand:
            hand.execute("update questions set expires = '2026-01-01T00:00:00.000Z'")
        await lark.say("yes", reply_to=card)
        assert "has expired. Nothing was run" in (await lark.until_replies(1))[0]


# Commands


async def test_questions_and_tasks_are_listed(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, needs(TOUCH), OPERATORS) as lark:
        for number, text in enumerate(("/questions", "/tasks", "/usage", "/approve"), 1):
            await lark.say(text)
            await lark.until_replies(number)
        assert lark.replies() == [
            "No open questions.",
            "No tasks in this conversation yet.",
            "This conversation has no usage yet.",
            "No open questions.",
        ]
        await lark.say("touch it")
        [asked] = await open_questions(lark, 1)
        await lark.say("/questions")
        listed = (await lark.until_replies(5))[4]
        assert f"`{asked.question.id[-6:]}` approval: touch ran" in listed
        await lark.say("/任务")
        listed = (await lark.until_replies(6))[5]
        assert "等待答复 · " in listed
        assert listed.endswith("\uff1atouch it")
        await lark.say("/approve 0000-9")
        assert "No open question 0000-9" in (await lark.until_replies(7))[6]
        await lark.say("/reject too risky")
        assert (await lark.until_replies(8))[7] == "over"
        assert "too risky" in results(lark)
        await lark.say("/usage")
        assert "input tokens and" in (await lark.until_replies(9))[8]


async def test_plan_review_is_turned_on_for_later_tasks(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("one")]), Reply("first"), Reply(calls=[plan("two")]), Reply("2nd")]
    async with open_lark_gateway(tmp_path, script, OPERATORS) as lark:
        await lark.say("/plan on")
        assert "Every plan" in (await lark.until_replies(1))[0]
        await lark.say("/plan maybe")
        assert "`/plan on` or `/plan off`" in (await lark.until_replies(2))[1]
        await lark.say("/new")  # the setting belongs to the chat, not to the session
        await lark.until_replies(3)
        await lark.say("do it")
        [asked] = await open_questions(lark, 1)
        assert asked.question.kind == "plan"
        await lark.say("/approve")
        assert (await lark.until_replies(4))[3] == "first"
        await lark.say("/计划 关")
        assert "无需审阅" in (await lark.until_replies(5))[4]
        await lark.say("again")
        assert (await lark.until_replies(6))[5] == "2nd"


async def test_a_chat_can_have_its_own_model(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("one"), Reply("two")], OPERATORS) as lark:
        for number, text in enumerate(
            ("/model", "/model claude-y", "hello", "/model two words", "/model default", "hi"), 1
        ):
            await lark.say(text)
            await lark.until_replies(number)
        assert [each["model"] for each in lark.core.model.requests] == ["claude-y", "claude-x"]
        assert "claude-y" in lark.replies()[1]
        assert "the name of a model" in lark.replies()[3]


@pytest.mark.parametrize("text", ["/plan on", "/model claude-y"])
async def test_only_operators_change_the_settings_of_a_chat(tmp_path: Path, text: str) -> None:
    async with open_lark_gateway(tmp_path, [Reply("as ever")]) as lark:
        await lark.say(text)
        assert await lark.until_replies(1) == ["Only operators can change this."]
        await lark.say("hello")
        await lark.until_replies(2)
        assert lark.core.model.requests[0]["model"] == "claude-x"


async def test_an_operator_cannot_turn_off_a_configured_review(tmp_path: Path) -> None:
    settings = with_values(OPERATORS, plan_review="complex")
    async with open_lark_gateway(tmp_path, [], settings) as lark:
        await lark.say("/plan off")
        assert "Complex plans" in (await lark.until_replies(1))[0]


async def test_settings_apply_to_one_chat(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("direct")], OPERATORS) as lark:
        await lark.sim.send_text(lark.person, lark.group, "/model claude-y", mention_bot=True)
        await lark.until_replies(1, lark.group)
        await lark.say("hello")
        await lark.until_replies(1)
        assert lark.core.model.requests[0]["model"] == "claude-x"

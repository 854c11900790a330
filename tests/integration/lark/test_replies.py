"""What people get from the bot, over the real websocket client and real calls."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.simulator import LarkSim
from internal.simulators.lark.user_actions import MessageDraft
from internal.simulators.lark.websocket.delivery import EventPush
from tests.support.agent_app import plan
from tests.support.anthropic_server import Fault, Reply, Rules, When
from tests.support.lark_gateway import APP, QUIET, Rig, rig

LONG = "".join(f"Sentence number {n} of a long answer. " for n in range(3000))
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n\n"


async def test_a_direct_message_gets_one_reply_to_it(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("It is **42**.")]) as house:
        asked = await house.say("what is 6*7?")
        assert await house.until_replies(1) == ["It is **42**."]
        assert house.from_bot()[0].parent_id == asked
        await house.settled()
        assert len(house.from_bot()) == 1


async def test_the_same_message_five_times_and_an_hour_later_gets_one(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("once"), Reply("again")]) as house:
        house.sim.set_faults(duplicates=4, new_event_ids=True, fragment_bytes=100)
        asked = await house.say("hello")
        await house.until_replies(1)
        house.sim.lark.clock.advance(3600)
        house.sim.redeliver(asked)
        await house.sim.until(lambda _: len(house.sim.pushes[0].attempts) == 6)
        await house.settled()
        assert house.replies() == ["once"]
        assert set(house.sim.pushes[0].attempts) == {"ok"}


async def test_in_a_group_only_a_mention_is_heard(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("I am here."), Reply("second")]) as house:
        loud = replace(house.sim.app, hears_all=True)
        house.sim.lark.state.apps[loud.app_id] = loud
        await house.sim.send_text(house.person, house.group, "nobody asked you")
        named = await house.sim.send_text(
            house.person, house.group, "what do you think?", mention_bot=True
        )
        assert await house.until_replies(1, house.group) == ["I am here."]
        assert house.from_bot(house.group)[0].parent_id == named
        assert told(house) == ["what do you think?"]
        assert len(house.sim.pushes) == 2


async def test_an_open_group_is_answered_without_a_mention(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("yes")], replace(QUIET, group_policy="open")) as house:
        loud = replace(house.sim.app, hears_all=True)
        house.sim.lark.state.apps[loud.app_id] = loud
        await house.sim.send_text(house.person, house.group, "anyone?")
        assert await house.until_replies(1, house.group) == ["yes"]


async def test_in_queue_mode_two_messages_of_a_chat_run_one_after_the_other(
    tmp_path: Path,
) -> None:
    script = [Reply("first done", hold="go"), Reply("second done")]
    async with rig(tmp_path, script, replace(QUIET, busy_mode="queue")) as house:
        await house.say("first")
        await house.core.model.until_open(1)
        await house.say("second")
        await house.sim.until(lambda _: [push.done for push in heard(house)] == [True] * 2)
        house.core.model.release("go")
        assert await house.until_replies(2) == ["first done", "second done"]
        parents = [one.parent_id for one in house.from_bot()]
        assert parents == [push.message_id for push in heard(house)]


async def test_steering_is_taken_by_the_run_and_one_reply_answers_both(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("count")], hold="go"), Reply("both answered")]
    async with rig(tmp_path, script) as house:
        await house.say("count to ten")
        await house.core.model.until_open(1)
        second = await house.say("in French")
        await house.sim.until(lambda _: reactions(house, second) == ["OnIt"])
        house.core.model.release("go")
        assert await house.until_replies(1) == ["both answered"]
        await house.settled()
        assert len(house.from_bot()) == 1
        assert "in French" in told(house)[-1]


async def test_two_chats_run_side_by_side(tmp_path: Path) -> None:
    rules = Rules(
        [
            Reply("for one", hold="one", when=When(last_user="from one")),
            Reply("for two", when=When(last_user="from two")),
        ]
    )
    async with rig(tmp_path, rules) as house:
        other = house.sim.people[1]
        await house.say("from one")
        await house.core.model.until_open(1)
        await house.sim.send_text(other, house.sim.dm(other), "from two")
        assert await house.until_replies(1, house.sim.dm(other)) == ["for two"]
        assert house.replies() == []
        house.core.model.release("one")
        assert await house.until_replies(1) == ["for one"]


async def test_acks_leave_at_once_while_the_model_takes_long(tmp_path: Path) -> None:
    async with rig(tmp_path, Rules([Reply("late", hold="go")])) as house:
        house.sim.set_faults(limits=False)
        for number in range(8):
            await house.say(f"message {number}")
        await house.sim.until(lambda _: [push.done for push in heard(house)] == [True] * 8)
        assert {tuple(push.attempts) for push in heard(house)} == {("ok",)}
        acks = [entry.ms for entry in house.sim.log if entry.kind == "frame.in"]
        assert acks
        assert max(acks) < 1000
        await house.core.model.until_open(1)
        house.core.model.release("go")
        await house.until_replies(1)


async def test_a_session_remembers_and_new_forgets(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("one"), Reply("two"), Reply("three")]) as house:
        for count, text in enumerate(("first", "second", "/new", "third"), 1):
            await house.say(text)
            await house.until_replies(count)
        requests = [json.dumps(request["messages"]) for request in house.core.model.requests]
        assert "first" in requests[1]
        assert "first" not in requests[2]
        assert "New conversation" in house.replies()[2]


async def test_commands_work_while_a_run_is_at_work(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("never", hold="go")]) as house:
        asked = await house.say("work for an hour")
        await house.core.model.until_open(1)
        await house.say("/status")
        assert await house.until_replies(1) == ["Working: work for an hour"]
        await house.say("/停止")
        replies = await house.until_replies(3)
        assert replies[1] == "正在停止…" or "Stopped." in replies[1]
        stopped = next(one for one in house.from_bot() if one.parent_id == asked)
        assert "Stopped." in house.replies()[house.from_bot().index(stopped)]
        assert len(house.core.model.requests) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/hepl", "Unknown command /hepl. Did you mean /help?"),
        ("/taskfoo", "Unknown command /taskfoo. Did you mean /tasks?"),
        ("/xyzzy", "Unknown command /xyzzy. Send /help for a list of commands."),
        ("\uff0f帮助", "/停止"),
        ("/status", "Nothing is running."),
        ("/stop", "Nothing is running."),
    ],
)
async def test_commands_are_exact_words(tmp_path: Path, text: str, said: str) -> None:
    async with rig(tmp_path, []) as house:
        await house.say(text)
        assert said in (await house.until_replies(1))[0]


async def test_others_may_not_stop_a_run_but_an_operator_may(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        one, two, boss = sim.people[:3]
        rules = replace(QUIET, operate=(boss.open_id,))
        async with rig(tmp_path, [Reply("never", hold="go")], rules, sim=sim) as house:
            await sim.send_text(one, house.group, "work", mention_bot=True)
            await house.core.model.until_open(1)
            await sim.send_text(two, house.group, "/stop", mention_bot=True)
            refusal = "Only the person who started this task or an operator can stop it."
            assert await house.until_replies(1, house.group) == [refusal]
            await sim.send_text(boss, house.group, "/stop", mention_bot=True)
            replies = await house.until_replies(3, house.group)
            assert any("Stopped." in reply for reply in replies)


async def test_what_cannot_be_read_is_said_and_what_says_nothing_is_settled(
    tmp_path: Path,
) -> None:
    async with rig(tmp_path, [Reply("to the last one")]) as house:
        await house.sim.send(house.person, house.dm, MessageDraft("location", {"name": "here"}))
        assert "rich text" in (await house.until_replies(1))[0]
        await house.sim.send(house.person, house.dm, MessageDraft("text", {"text": "  "}))
        await house.sim.send(house.person, house.dm, MessageDraft("text", {"wrong": [1]}))
        for broken in (
            {},
            {"message": None},
            {"message": {"message_id": "", "chat_id": "oc_x"}},
            {"message": {"message_id": ["om_1"], "chat_id": 7}},
            {"sender": "x", "message": {"message_id": "om_2", "chat_id": "oc_x"}},
            {"message": {"message_id": "om_3", "chat_id": "oc_x", "content": "{"}},
        ):
            house.sim.push("im.message.receive_v1", broken)
        house.sim.push("im.message.recalled_v1", {"message_id": "om_1"})
        house.sim.push("never.heard.of_v9", {"any": "thing"})
        await house.say("still there?")
        assert (await house.until_replies(2))[1] == "to the last one"
        await house.settled()
        assert {tuple(push.attempts) for push in house.sim.pushes} == {("ok",)}
        assert told(house) == ["still there?"]


async def test_other_bots_and_ourselves_are_not_answered(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("to a person")]) as house:
        await house.transport.identity.wait()
        for kind, open_id in (("app", "ou_other"), ("user", house.sim.app.open_id)):
            house.sim.push("im.message.receive_v1", event(house, kind, open_id, f"om_{kind}"))
        await house.say("hello")
        assert await house.until_replies(1) == ["to a person"]
        await house.settled()
        assert told(house) == ["hello"]


async def test_a_message_that_comes_an_hour_late_gets_an_apology(tmp_path: Path) -> None:
    async with rig(tmp_path, []) as house:
        await house.say("old news", age_seconds=61 * 60 + 30)
        assert "61 minutes late" in (await house.until_replies(1))[0]


async def test_200_kb_of_text_and_500_mentions(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("hello all")]) as house:
        await house.say("x" * 200 * 1024)
        assert "204,800 characters" in (await house.until_replies(1))[0]
        names = " ".join(f"@_user_{n}" for n in range(500, 0, -1))
        mentions = [
            {"key": f"@_user_{n}", "id": {"open_id": f"ou_{n}"}, "name": f"Name {n}"}
            for n in range(1, 501)
        ]
        await house.sim.send(
            house.person, house.dm, MessageDraft("text", {"text": names}, mentions)
        )
        assert (await house.until_replies(2))[1] == "hello all"
        assert told(house)[0].startswith("@Name 500 @Name 499 ")


async def test_who_is_not_on_the_list_is_told_so(tmp_path: Path) -> None:
    async with rig(tmp_path, [], replace(QUIET, talk=("ou_somebody",))) as house:
        await house.say("let me in")
        assert "permission to use this bot" in (await house.until_replies(1))[0]


async def test_a_failed_run_is_told_in_a_persons_words(tmp_path: Path) -> None:
    fault = Fault("status", status=401, error="authentication_error", message="sk-secret-123")
    async with rig(tmp_path, [Reply(fault=fault)]) as house:
        await house.say("请回答")
        reply = (await house.until_replies(1))[0]
        assert reply.startswith("模型服务拒绝了 API 密钥")
        assert "run-" in reply
        assert "sk-secret-123" not in reply


@pytest.mark.parametrize(
    "fault",
    [
        AnswerFault("lost", "/reply", times=2),
        AnswerFault("bad_gateway", "/reply", times=2),
        AnswerFault("rate_limit", "/reply", times=1, seconds=0.1),
        AnswerFault("code", "/reply", times=2, code=230020),
        AnswerFault("code", "/reply", times=1, code=99991663),
        AnswerFault("code", "/reply", times=1, code=230049),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.code}",
)
async def test_a_reply_survives_what_passes(tmp_path: Path, fault: AnswerFault) -> None:
    async with rig(tmp_path, [Reply("still one")]) as house:
        house.sim.faults.answers.append(fault)
        await house.say("hello")
        assert await house.until_replies(1) == ["still one"]
        await house.settled()
        assert house.replies() == ["still one"]
        assert not fault.times


async def test_a_revoked_token_is_replaced(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("one"), Reply("two")]) as house:
        await house.say("first")
        await house.until_replies(1)
        house.sim.lark.tokens.revoke()
        await house.say("second")
        assert (await house.until_replies(2))[1] == "two"


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        ("plain", ["interactive"]),
        (TABLE * 9, ["interactive"]),
        (LONG, ["post", "file"]),
    ],
    ids=["card", "many tables", "long"],
)
async def test_the_form_of_an_answer(tmp_path: Path, answer: str, kinds: list[str]) -> None:
    async with rig(tmp_path, [Reply(answer)]) as house:
        await house.say("tell me")
        await house.until_replies(len(kinds))
        await house.settled()
        assert [one.msg_type for one in house.from_bot()] == kinds
        if kinds[-1] == "file":
            key = json.loads(house.from_bot()[1].content)["file_key"]
            assert house.sim.lark.state.media[key].data.decode() == LONG.strip()
        if not answer:
            assert house.replies() == ["The run ended without an answer."]


async def test_refused_cards_fall_to_post_and_text(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("as post"), Reply("as text")]) as house:
        answers = house.sim.faults.answers
        answers.append(AnswerFault("code", "/reply", times=1, code=230099))
        await house.say("first")
        await house.until_replies(1)
        answers.append(AnswerFault("code", "/reply", times=2, code=230099))
        await house.say("second")
        assert await house.until_replies(2) == ["as post", "as text"]
        assert [one.msg_type for one in house.from_bot()] == ["post", "text"]


async def test_the_answer_to_a_recalled_message_is_sent_to_the_chat(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("anyway", hold="go")]) as house:
        asked = await house.say("never mind")
        await house.core.model.until_open(1)
        house.sim.lark.state.messages[asked].deleted = True
        house.core.model.release("go")
        assert await house.until_replies(1) == ["anyway"]
        assert house.from_bot()[0].parent_id == ""


async def test_a_chat_that_lost_the_bot_is_a_visible_dead_letter(tmp_path: Path) -> None:
    async with rig(tmp_path, Rules([Reply("too late", hold="go")])) as house:
        await house.sim.send_text(house.person, house.group, "hello", mention_bot=True)
        await house.core.model.until_open(1)
        house.group.bots.clear()
        house.core.model.release("go")
        async with asyncio.timeout(20):
            while not house.door.health.dead_letters:
                await house.sim.lark.changed_within(0.05)
        await house.say("and here?")
        assert await house.until_replies(1) == ["too late"]


def told(house: Rig) -> list[str]:
    """Return the newest words of a person in each request that the model got."""
    found = []
    for request in house.core.model.requests:
        content = request["messages"][-1]["content"]
        if isinstance(content, str):
            found.append(content)
        else:
            found.append("".join(part.get("text", "") for part in content))
    return found


def heard(house: Rig) -> list[EventPush]:
    """Return the messages on their way to the bot; its own reactions are events too."""
    return [push for push in house.sim.pushes if push.message_id]


def reactions(house: Rig, message_id: str) -> list[str]:
    return [each.emoji for each in house.sim.lark.state.messages[message_id].reactions]


def event(house: Rig, kind: str, open_id: str, message_id: str) -> dict[str, object]:
    return {
        "sender": {"sender_id": {"open_id": open_id}, "sender_type": kind},
        "message": {
            "message_id": message_id,
            "chat_id": house.dm.chat_id,
            "chat_type": "p2p",
            "message_type": "text",
            "content": '{"text": "I am a bot"}',
        },
    }

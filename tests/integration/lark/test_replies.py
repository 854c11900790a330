"""What people get from the bot, over the real websocket client and real calls."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from internal.config.chat import ChatAccess
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.simulator import LarkSim
from internal.simulators.lark.user_actions import MessageDraft
from internal.simulators.lark.websocket.delivery import EventPush
from tests.support.agent_app import plan
from tests.support.anthropic_server import Fault, Reply, Rules, When
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, QUIET, LarkRig, open_rig

LONG = "".join(f"Sentence number {n} of a long answer. " for n in range(3000))
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n\n"


async def test_a_direct_message_gets_one_reply_to_it(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("It is **42**.")]) as rig:
        asked = await rig.say("what is 6*7?")
        assert await rig.until_replies(1) == ["It is **42**."]
        assert rig.from_bot()[0].parent_id == asked
        await rig.settled()
        assert len(rig.from_bot()) == 1


async def test_a_message_delivered_six_times_is_answered_once(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("once"), Reply("again")]) as rig:
        rig.sim.set_faults(duplicates=4, new_event_ids=True, fragment_bytes=100)
        asked = await rig.say("hello")
        await rig.until_replies(1)
        rig.sim.lark.clock.advance(3600)
        rig.sim.redeliver(asked)
        await rig.sim.until(lambda _: len(rig.sim.pushes[0].attempts) == 6)
        await rig.settled()
        assert rig.replies() == ["once"]
        assert set(rig.sim.pushes[0].attempts) == {"ok"}


async def test_in_a_group_only_mentions_are_answered(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("I am here."), Reply("second")]) as rig:
        loud = replace(rig.sim.app, hears_all=True)
        rig.sim.lark.state.apps[loud.app_id] = loud
        await rig.sim.send_text(rig.person, rig.group, "nobody asked you")
        named = await rig.sim.send_text(
            rig.person, rig.group, "what do you think?", mention_bot=True
        )
        assert await rig.until_replies(1, rig.group) == ["I am here."]
        assert rig.from_bot(rig.group)[0].parent_id == named
        assert told(rig) == ["what do you think?"]
        assert len(rig.sim.pushes) == 2


async def test_an_open_group_is_answered_without_a_mention(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("yes")], with_values(QUIET, group_policy="open")) as rig:
        loud = replace(rig.sim.app, hears_all=True)
        rig.sim.lark.state.apps[loud.app_id] = loud
        await rig.sim.send_text(rig.person, rig.group, "anyone?")
        assert await rig.until_replies(1, rig.group) == ["yes"]


async def test_in_queue_mode_two_messages_of_a_chat_run_one_after_the_other(
    tmp_path: Path,
) -> None:
    script = [Reply("first done", hold="go"), Reply("second done")]
    async with open_rig(tmp_path, script, with_values(QUIET, busy_mode="queue")) as rig:
        await rig.say("first")
        await rig.core.model.until_open(1)
        await rig.say("second")
        await rig.sim.until(lambda _: [push.done for push in heard(rig)] == [True] * 2)
        rig.core.model.release("go")
        assert await rig.until_replies(2) == ["first done", "second done"]
        parents = [one.parent_id for one in rig.from_bot()]
        assert parents == [push.message_id for push in heard(rig)]


async def test_one_reply_answers_a_message_and_its_steering(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("count")], hold="go"), Reply("both answered")]
    async with open_rig(tmp_path, script) as rig:
        await rig.say("count to ten")
        await rig.core.model.until_open(1)
        second = await rig.say("in French")
        await rig.sim.until(lambda _: reactions(rig, second) == ["OnIt"])
        rig.core.model.release("go")
        assert await rig.until_replies(1) == ["both answered"]
        await rig.settled()
        assert len(rig.from_bot()) == 1
        assert "in French" in told(rig)[-1]


async def test_two_chats_run_in_parallel(tmp_path: Path) -> None:
    rules = Rules(
        [
            Reply("for one", hold="one", when=When(last_user="from one")),
            Reply("for two", when=When(last_user="from two")),
        ]
    )
    async with open_rig(tmp_path, rules) as rig:
        other = rig.sim.people[1]
        await rig.say("from one")
        await rig.core.model.until_open(1)
        await rig.sim.send_text(other, rig.sim.dm(other), "from two")
        assert await rig.until_replies(1, rig.sim.dm(other)) == ["for two"]
        assert rig.replies() == []
        rig.core.model.release("one")
        assert await rig.until_replies(1) == ["for one"]


async def test_events_are_acknowledged_while_the_model_is_slow(tmp_path: Path) -> None:
    async with open_rig(tmp_path, Rules([Reply("late", hold="go")])) as rig:
        rig.sim.set_faults(limits=False)
        for number in range(8):
            await rig.say(f"message {number}")
        await rig.sim.until(lambda _: [push.done for push in heard(rig)] == [True] * 8)
        assert {tuple(push.attempts) for push in heard(rig)} == {("ok",)}
        acks = [entry.ms for entry in rig.sim.log if entry.kind == "frame.in"]
        assert acks
        assert max(acks) < 1000
        await rig.core.model.until_open(1)
        rig.core.model.release("go")
        await rig.until_replies(1)


async def test_a_session_remembers_and_new_forgets(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("one"), Reply("two"), Reply("three")]) as rig:
        for count, text in enumerate(("first", "second", "/new", "third"), 1):
            await rig.say(text)
            await rig.until_replies(count)
        requests = [json.dumps(request["messages"]) for request in rig.core.model.requests]
        assert "first" in requests[1]
        assert "first" not in requests[2]
        assert "New conversation" in rig.replies()[2]


async def test_commands_work_during_a_run(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("never", hold="go")]) as rig:
        asked = await rig.say("work for an hour")
        await rig.core.model.until_open(1)
        await rig.say("/status")
        assert await rig.until_replies(1) == ["Working: work for an hour"]
        await rig.say("/停止")
        replies = await rig.until_replies(3)
        assert replies[1] == "正在停止…" or "Stopped." in replies[1]
        stopped = next(one for one in rig.from_bot() if one.parent_id == asked)
        assert "Stopped." in rig.replies()[rig.from_bot().index(stopped)]
        assert len(rig.core.model.requests) == 1


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
    async with open_rig(tmp_path, []) as rig:
        await rig.say(text)
        assert said in (await rig.until_replies(1))[0]


async def test_others_may_not_stop_a_run_but_an_operator_may(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        one, two, boss = sim.people[:3]
        settings = with_values(QUIET, access=ChatAccess(operate=(boss.open_id,)))
        async with open_rig(tmp_path, [Reply("never", hold="go")], settings, sim=sim) as rig:
            await sim.send_text(one, rig.group, "work", mention_bot=True)
            await rig.core.model.until_open(1)
            await sim.send_text(two, rig.group, "/stop", mention_bot=True)
            refusal = "Only the person who started this task or an operator can stop it."
            assert await rig.until_replies(1, rig.group) == [refusal]
            await sim.send_text(boss, rig.group, "/stop", mention_bot=True)
            replies = await rig.until_replies(3, rig.group)
            assert any("Stopped." in reply for reply in replies)


async def test_unsupported_messages_get_a_reply_and_empty_ones_none(
    tmp_path: Path,
) -> None:
    async with open_rig(tmp_path, [Reply("to the last one")]) as rig:
        await rig.sim.send(rig.person, rig.dm, MessageDraft("location", {"name": "here"}))
        assert "rich text" in (await rig.until_replies(1))[0]
        await rig.sim.send(rig.person, rig.dm, MessageDraft("text", {"text": "  "}))
        await rig.sim.send(rig.person, rig.dm, MessageDraft("text", {"wrong": [1]}))
        for broken in (
            {},
            {"message": None},
            {"message": {"message_id": "", "chat_id": "oc_x"}},
            {"message": {"message_id": ["om_1"], "chat_id": 7}},
            {"sender": "x", "message": {"message_id": "om_2", "chat_id": "oc_x"}},
            {"message": {"message_id": "om_3", "chat_id": "oc_x", "content": "{"}},
        ):
            rig.sim.push("im.message.receive_v1", broken)
        rig.sim.push("im.message.recalled_v1", {"message_id": "om_1"})
        rig.sim.push("never.heard.of_v9", {"any": "thing"})
        await rig.say("still there?")
        assert (await rig.until_replies(2))[1] == "to the last one"
        await rig.settled()
        assert {tuple(push.attempts) for push in rig.sim.pushes} == {("ok",)}
        assert told(rig) == ["still there?"]


async def test_bots_and_own_messages_are_not_answered(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("to a person")]) as rig:
        await rig.transport.identity.wait()
        for kind, open_id in (("app", "ou_other"), ("user", rig.sim.app.open_id)):
            rig.sim.push("im.message.receive_v1", event(rig, kind, open_id, f"om_{kind}"))
        await rig.say("hello")
        assert await rig.until_replies(1) == ["to a person"]
        await rig.settled()
        assert told(rig) == ["hello"]


async def test_a_message_that_comes_an_hour_late_gets_an_apology(tmp_path: Path) -> None:
    async with open_rig(tmp_path, []) as rig:
        await rig.say("old news", age_seconds=61 * 60 + 30)
        assert "61 minutes late" in (await rig.until_replies(1))[0]


async def test_200_kb_of_text_and_500_mentions(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("hello all")]) as rig:
        await rig.say("x" * 200 * 1024)
        assert "204,800 characters" in (await rig.until_replies(1))[0]
        names = " ".join(f"@_user_{n}" for n in range(500, 0, -1))
        mentions = [
            {"key": f"@_user_{n}", "id": {"open_id": f"ou_{n}"}, "name": f"Name {n}"}
            for n in range(1, 501)
        ]
        await rig.sim.send(rig.person, rig.dm, MessageDraft("text", {"text": names}, mentions))
        assert (await rig.until_replies(2))[1] == "hello all"
        assert told(rig)[0].startswith("@Name 500 @Name 499 ")


async def test_a_person_who_may_not_talk_gets_a_refusal(tmp_path: Path) -> None:
    async with open_rig(
        tmp_path, [], with_values(QUIET, access=ChatAccess(talk=("ou_somebody",)))
    ) as rig:
        await rig.say("let me in")
        assert "permission to use this bot" in (await rig.until_replies(1))[0]


async def test_a_failed_run_has_a_readable_reply(tmp_path: Path) -> None:
    fault = Fault("status", status=401, error="authentication_error", message="sk-secret-123")
    async with open_rig(tmp_path, [Reply(fault=fault)]) as rig:
        await rig.say("请回答")
        reply = (await rig.until_replies(1))[0]
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
async def test_a_reply_survives_temporary_failures(tmp_path: Path, fault: AnswerFault) -> None:
    async with open_rig(tmp_path, [Reply("still one")]) as rig:
        rig.sim.faults.answers.append(fault)
        await rig.say("hello")
        assert await rig.until_replies(1) == ["still one"]
        await rig.settled()
        assert rig.replies() == ["still one"]
        assert not fault.times


async def test_a_revoked_token_is_replaced(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("one"), Reply("two")]) as rig:
        await rig.say("first")
        await rig.until_replies(1)
        rig.sim.lark.tokens.revoke()
        await rig.say("second")
        assert (await rig.until_replies(2))[1] == "two"


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
    async with open_rig(tmp_path, [Reply(answer)]) as rig:
        await rig.say("tell me")
        await rig.until_replies(len(kinds))
        await rig.settled()
        assert [one.msg_type for one in rig.from_bot()] == kinds
        if kinds[-1] == "file":
            key = json.loads(rig.from_bot()[1].content)["file_key"]
            assert rig.sim.lark.state.media[key].data.decode() == LONG.strip()
        if not answer:
            assert rig.replies() == ["The run ended without an answer."]


async def test_rejected_cards_are_sent_as_post_or_text(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("as post"), Reply("as text")]) as rig:
        answers = rig.sim.faults.answers
        answers.append(AnswerFault("code", "/reply", times=1, code=230099))
        await rig.say("first")
        await rig.until_replies(1)
        answers.append(AnswerFault("code", "/reply", times=2, code=230099))
        await rig.say("second")
        assert await rig.until_replies(2) == ["as post", "as text"]
        assert [one.msg_type for one in rig.from_bot()] == ["post", "text"]


async def test_the_answer_to_a_recalled_message_is_sent_to_the_chat(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("anyway", hold="go")]) as rig:
        asked = await rig.say("never mind")
        await rig.core.model.until_open(1)
        rig.sim.lark.state.messages[asked].deleted = True
        rig.core.model.release("go")
        assert await rig.until_replies(1) == ["anyway"]
        assert rig.from_bot()[0].parent_id == ""


async def test_a_reply_to_a_chat_without_the_bot_is_a_dead_letter(tmp_path: Path) -> None:
    async with open_rig(tmp_path, Rules([Reply("too late", hold="go")])) as rig:
        await rig.sim.send_text(rig.person, rig.group, "hello", mention_bot=True)
        await rig.core.model.until_open(1)
        rig.group.bots.clear()
        rig.core.model.release("go")
        async with asyncio.timeout(20):
            while not rig.channel.health.dead_letters:
                await rig.sim.lark.changed_within(0.05)
        await rig.say("and here?")
        assert await rig.until_replies(1) == ["too late"]


def told(rig: LarkRig) -> list[str]:
    """Return the newest words of a person in each request that the model got."""
    found = []
    for request in rig.core.model.requests:
        content = request["messages"][-1]["content"]
        if isinstance(content, str):
            found.append(content)
        else:
            found.append("".join(part.get("text", "") for part in content))
    return found


def heard(rig: LarkRig) -> list[EventPush]:
    """Return the messages on their way to the bot; its own reactions are events too."""
    return [push for push in rig.sim.pushes if push.message_id]


def reactions(rig: LarkRig, message_id: str) -> list[str]:
    return [each.emoji for each in rig.sim.lark.state.messages[message_id].reactions]


def event(rig: LarkRig, kind: str, open_id: str, message_id: str) -> dict[str, object]:
    return {
        "sender": {"sender_id": {"open_id": open_id}, "sender_type": kind},
        "message": {
            "message_id": message_id,
            "chat_id": rig.dm.chat_id,
            "chat_type": "p2p",
            "message_type": "text",
            "content": '{"text": "I am a bot"}',
        },
    }

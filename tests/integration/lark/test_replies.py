"""Replies of the bot, over the real websocket client and real calls."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from internal.settings.chat import ChatAccess
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.simulator import LarkSim
from internal.simulators.lark.user_actions import MessageDraft
from internal.simulators.lark.websocket.delivery import EventPush
from tests.support.agent_app import plan
from tests.support.anthropic_server import Fault, Reply, Rules, When
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, QUIET, LarkGateway, open_lark_gateway

LONG = "".join(f"Sentence number {n} of a long answer. " for n in range(3000))
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n\n"


async def test_a_direct_message_gets_one_reply_to_it(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("It is **42**.")]) as lark:
        asked = await lark.say("what is 6*7?")
        assert await lark.until_replies(1) == ["It is **42**."]
        assert lark.from_bot()[0].parent_id == asked
        await lark.settled()
        assert len(lark.from_bot()) == 1


async def test_a_deeply_nested_answer_is_readable(tmp_path: Path) -> None:
    script = [Reply("> " * 2_000 + "deep"), Reply("[" * 10_000 + "deep")]
    async with open_lark_gateway(tmp_path, script) as lark:
        await lark.say("nest")
        assert await lark.until_replies(1) == ["> " * 8 + "deep"]
        await lark.say("again")
        assert (await lark.until_replies(2))[1] == "[" * 10_000 + "deep"


async def test_a_message_delivered_six_times_is_answered_once(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("once"), Reply("again")]) as lark:
        lark.sim.set_faults(duplicates=4, new_event_ids=True, fragment_bytes=100)
        asked = await lark.say("hello")
        await lark.until_replies(1)
        lark.sim.lark.clock.advance(3600)
        lark.sim.redeliver(asked)
        await lark.sim.until(lambda _: len(lark.sim.pushes[0].attempts) == 6)
        await lark.settled()
        assert lark.replies() == ["once"]
        assert set(lark.sim.pushes[0].attempts) == {"ok"}


async def test_in_a_group_only_mentions_are_answered(tmp_path: Path) -> None:
    settings = with_values(QUIET, auto_chat_context=False)
    script = [Reply("I am here."), Reply("second")]
    async with open_lark_gateway(tmp_path, script, settings) as lark:
        loud = replace(lark.sim.app, hears_all=True)
        lark.sim.lark.state.apps[loud.app_id] = loud
        await lark.sim.send_text(lark.person, lark.group, "nobody asked you")
        named = await lark.sim.send_text(
            lark.person, lark.group, "what do you think?", mention_bot=True
        )
        assert await lark.until_replies(1, lark.group) == ["I am here."]
        assert lark.from_bot(lark.group)[0].parent_id == named
        assert told(lark) == ['<message from="Mei Lin">\nwhat do you think?\n</message>']
        assert len(lark.sim.pushes) == 2


async def test_an_open_group_is_answered_without_a_mention(tmp_path: Path) -> None:
    async with open_lark_gateway(
        tmp_path, [Reply("yes")], with_values(QUIET, group_policy="open")
    ) as lark:
        loud = replace(lark.sim.app, hears_all=True)
        lark.sim.lark.state.apps[loud.app_id] = loud
        await lark.sim.send_text(lark.person, lark.group, "anyone?")
        assert await lark.until_replies(1, lark.group) == ["yes"]


async def test_in_queue_mode_two_messages_of_a_chat_run_one_after_the_other(
    tmp_path: Path,
) -> None:
    script = [Reply("first done", hold="go"), Reply("second done")]
    async with open_lark_gateway(tmp_path, script, with_values(QUIET, busy_mode="queue")) as lark:
        await lark.say("first")
        await lark.core.model.until_open(1)
        await lark.say("second")
        await lark.sim.until(lambda _: [push.done for push in heard(lark)] == [True] * 2)
        lark.core.model.release("go")
        assert await lark.until_replies(2) == ["first done", "second done"]
        parents = [one.parent_id for one in lark.from_bot()]
        assert parents == [push.message_id for push in heard(lark)]


async def test_one_reply_answers_a_message_and_its_steering(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("count")], hold="go"), Reply("both answered")]
    async with open_lark_gateway(tmp_path, script) as lark:
        await lark.say("count to ten")
        await lark.core.model.until_open(1)
        second = await lark.say("in French")
        await lark.sim.until(lambda _: reactions(lark, second) == ["OnIt"])
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["both answered"]
        await lark.sim.until(lambda _: reactions(lark, second) == ["DONE"])
        await lark.settled()
        assert len(lark.from_bot()) == 1
        assert "in French" in told(lark)[-1]


async def test_two_chats_run_in_parallel(tmp_path: Path) -> None:
    rules = Rules(
        [
            Reply("for one", hold="one", when=When(last_user="from one")),
            Reply("for two", when=When(last_user="from two")),
        ]
    )
    async with open_lark_gateway(tmp_path, rules) as lark:
        other = lark.sim.people[1]
        await lark.say("from one")
        await lark.core.model.until_open(1)
        await lark.sim.send_text(other, lark.sim.dm(other), "from two")
        assert await lark.until_replies(1, lark.sim.dm(other)) == ["for two"]
        assert lark.replies() == []
        lark.core.model.release("one")
        assert await lark.until_replies(1) == ["for one"]


async def test_events_are_acknowledged_while_the_model_is_slow(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, Rules([Reply("late", hold="go")])) as lark:
        lark.sim.set_faults(limits=False)
        for number in range(8):
            await lark.say(f"message {number}")
        await lark.sim.until(lambda _: [push.done for push in heard(lark)] == [True] * 8)
        assert {tuple(push.attempts) for push in heard(lark)} == {("ok",)}
        await lark.core.model.until_open(1)
        lark.core.model.release("go")
        await lark.until_replies(1)


async def test_a_session_keeps_its_history_until_new(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("one"), Reply("two"), Reply("three")]) as lark:
        for count, text in enumerate(("first", "second", "/new", "third"), 1):
            await lark.say(text)
            await lark.until_replies(count)
        requests = [json.dumps(request["messages"]) for request in lark.core.model.requests]
        assert "first" in requests[1]
        assert "first" not in requests[2]
        assert "New conversation" in lark.replies()[2]


async def test_commands_work_during_a_run(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("never", hold="go")]) as lark:
        asked = await lark.say("work for an hour")
        await lark.core.model.until_open(1)
        await lark.say("/status")
        (status,) = await lark.until_replies(1)
        assert status.splitlines()[0] == "Working: work for an hour"
        stop = await lark.say("/停止")
        assert "Stopped." in (await lark.until_replies(2))[1]
        await lark.sim.until(lambda _: reactions(lark, stop) == ["DONE"])
        assert len(lark.replies()) == 2
        stopped = next(one for one in lark.from_bot() if one.parent_id == asked)
        assert "Stopped." in lark.replies()[lark.from_bot().index(stopped)]
        assert len(lark.core.model.requests) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/hepl", "Unknown command /hepl. Did you mean /help?"),
        ("/taskfoo", "Unknown command /taskfoo.\n\nTell me what to do."),
        ("/reset", "New conversation started."),
        ("/重置", "已开始新会话"),
        ("/start", "Unknown command /start.\n\nTell me what to do."),
        ("/xyzzy", "Unknown command /xyzzy.\n\nTell me what to do."),
        ("\uff0f帮助", "/停止"),
        ("/status", "Nothing is running."),
        ("/stop", "Nothing is running."),
    ],
)
async def test_commands_are_exact_words(tmp_path: Path, text: str, said: str) -> None:
    async with open_lark_gateway(tmp_path, []) as lark:
        await lark.say(text)
        assert said in (await lark.until_replies(1))[0]


async def test_others_may_not_stop_a_run_but_an_operator_may(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        one, two, boss = sim.people[:3]
        settings = with_values(QUIET, access=ChatAccess(operate=(boss.open_id,)))
        async with open_lark_gateway(
            tmp_path, [Reply("never", hold="go")], settings, sim=sim
        ) as lark:
            await sim.send_text(one, lark.group, "work", mention_bot=True)
            await lark.core.model.until_open(1)
            await sim.send_text(two, lark.group, "/stop", mention_bot=True)
            refusal = "Only the person who started this task or an operator can stop it."
            assert await lark.until_replies(1, lark.group) == [refusal]
            await sim.send_text(boss, lark.group, "/stop", mention_bot=True)
            assert "Stopped." in (await lark.until_replies(2, lark.group))[1]


async def test_unsupported_messages_get_a_reply_and_empty_ones_none(
    tmp_path: Path,
) -> None:
    async with open_lark_gateway(tmp_path, [Reply("to the last one")]) as lark:
        await lark.sim.send(lark.person, lark.dm, MessageDraft("hologram", {"name": "here"}))
        assert "can't read" in (await lark.until_replies(1))[0]
        await lark.sim.send(lark.person, lark.dm, MessageDraft("text", {"text": "  "}))
        await lark.sim.send(lark.person, lark.dm, MessageDraft("text", {"wrong": [1]}))
        for broken in (
            {},
            {"message": None},
            {"message": {"message_id": "", "chat_id": "oc_x"}},
            {"message": {"message_id": ["om_1"], "chat_id": 7}},
            {"sender": "x", "message": {"message_id": "om_2", "chat_id": "oc_x"}},
            {"message": {"message_id": "om_3", "chat_id": "oc_x", "content": "{"}},
        ):
            lark.sim.push("im.message.receive_v1", broken)
        lark.sim.push("im.message.recalled_v1", {"message_id": "om_1"})
        lark.sim.push("never.heard.of_v9", {"any": "thing"})
        await lark.say("still there?")
        assert (await lark.until_replies(2))[1] == "to the last one"
        await lark.settled()
        assert {tuple(push.attempts) for push in lark.sim.pushes} == {("ok",)}
        assert told(lark) == ["still there?"]


async def test_bots_and_own_messages_are_not_answered(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("to a person")]) as lark:
        await lark.transport.identity.wait()
        for kind, open_id in (("app", "ou_other"), ("user", lark.sim.app.open_id)):
            lark.sim.push("im.message.receive_v1", event(lark, kind, open_id, f"om_{kind}"))
        await lark.say("hello")
        assert await lark.until_replies(1) == ["to a person"]
        await lark.settled()
        assert told(lark) == ["hello"]


async def test_a_message_that_comes_an_hour_late_gets_an_apology(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, []) as lark:
        await lark.say("old news", age_seconds=61 * 60 + 30)
        assert "61 minutes late" in (await lark.until_replies(1))[0]


async def test_200_kb_of_text_and_500_mentions(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("hello all")]) as lark:
        await lark.say("x" * 200 * 1024)
        assert "204,800 characters" in (await lark.until_replies(1))[0]
        names = " ".join(f"@_user_{n}" for n in range(500, 0, -1))
        mentions = [
            {"key": f"@_user_{n}", "id": {"open_id": f"ou_{n}"}, "name": f"Name {n}"}
            for n in range(1, 501)
        ]
        await lark.sim.send(lark.person, lark.dm, MessageDraft("text", {"text": names}, mentions))
        assert (await lark.until_replies(2))[1] == "hello all"
        assert told(lark)[0].startswith("@Name 500 @Name 499 ")


async def test_a_person_who_may_not_talk_gets_a_refusal(tmp_path: Path) -> None:
    async with open_lark_gateway(
        tmp_path, [], with_values(QUIET, access=ChatAccess(talk=("ou_other",)))
    ) as lark:
        await lark.say("let me in")
        assert "permission to use this bot" in (await lark.until_replies(1))[0]


async def test_a_cut_answer_says_that_it_is_incomplete(tmp_path: Path) -> None:
    cut = Reply("So far.", stop_reason="max_tokens", times=9)
    async with open_lark_gateway(tmp_path, [cut]) as lark:
        await lark.say("tell me all")
        reply = (await lark.until_replies(1))[0]
        assert reply.startswith("So far.")
        assert "reached its output limit, so the answer is incomplete" in reply


async def test_a_refusal_of_the_model_is_a_sentence_of_its_own(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply(stop_reason="refusal")]) as lark:
        await lark.say("do harm")
        assert "The model declined this request." in (await lark.until_replies(1))[0]


async def test_a_failed_run_has_a_readable_reply(tmp_path: Path) -> None:
    fault = Fault("status", status=401, error="authentication_error", message="sk-secret-123")
    async with open_lark_gateway(tmp_path, [Reply(fault=fault)]) as lark:
        await lark.say("请回答")
        reply = (await lark.until_replies(1))[0]
        assert reply.startswith("模型的 API 密钥缺失或被拒绝")
        assert "run-" not in reply
        assert "sk-secret-123" not in reply


@pytest.mark.parametrize(
    "fault",
    [
        AnswerFault("lost", "/reply", times=3),
        AnswerFault("bad_gateway", "/reply", times=2),
        AnswerFault("rate_limit", "/reply", times=1, seconds=0.1),
        AnswerFault("code", "/reply", times=2, code=230020),
        AnswerFault("code", "/reply", times=1, code=99991663),
        AnswerFault("code", "/reply", times=1, code=230049),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.code}",
)
@pytest.mark.first_rows(2)
async def test_a_reply_survives_temporary_failures(tmp_path: Path, fault: AnswerFault) -> None:
    async with open_lark_gateway(tmp_path, [Reply("still one")]) as lark:
        lark.sim.faults.answers.append(fault)
        await lark.say("hello")
        assert await lark.until_replies(1) == ["still one"]
        await lark.settled()
        assert lark.replies() == ["still one"]
        assert not fault.times


async def test_a_revoked_token_is_replaced(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("one"), Reply("two")]) as lark:
        await lark.say("first")
        await lark.until_replies(1)
        lark.sim.lark.tokens.revoke()
        await lark.say("second")
        assert (await lark.until_replies(2))[1] == "two"


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        ("plain", ["interactive"]),
        (TABLE * 9, ["interactive"] * 3),
        (LONG, ["interactive", "file"]),
    ],
    ids=["card", "many tables", "long"],
)
async def test_the_form_of_an_answer(tmp_path: Path, answer: str, kinds: list[str]) -> None:
    async with open_lark_gateway(tmp_path, [Reply(answer)]) as lark:
        await lark.say("tell me")
        await lark.until_replies(len(kinds))
        await lark.settled()
        assert [one.msg_type for one in lark.from_bot()] == kinds
        if kinds[-1] == "file":
            key = json.loads(lark.from_bot()[1].content)["file_key"]
            assert lark.sim.lark.state.media[key].data.decode() == LONG.strip()
        if not answer:
            assert lark.replies() == ["The run ended without an answer."]


async def test_rejected_cards_are_sent_as_post_or_text(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("as post"), Reply("as text")]) as lark:
        answers = lark.sim.faults.answers
        answers.append(AnswerFault("code", "/reply", times=1, code=230099))
        await lark.say("first")
        await lark.until_replies(1)
        answers.append(AnswerFault("code", "/reply", times=2, code=230099))
        await lark.say("second")
        assert await lark.until_replies(2) == ["as post", "as text"]
        assert [one.msg_type for one in lark.from_bot()] == ["post", "text"]


async def test_the_answer_to_a_recalled_message_is_sent_to_the_chat(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("anyway", hold="go")]) as lark:
        asked = await lark.say("never mind")
        await lark.core.model.until_open(1)
        lark.sim.lark.state.messages[asked].deleted = True
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["anyway"]
        assert lark.from_bot()[0].parent_id == ""


async def test_a_reply_to_a_chat_without_the_bot_is_a_dead_letter(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, Rules([Reply("too late", hold="go")])) as lark:
        await lark.sim.send_text(lark.person, lark.group, "hello", mention_bot=True)
        await lark.core.model.until_open(1)
        lark.group.bots.clear()
        lark.core.model.release("go")
        async with asyncio.timeout(20):
            while not (await lark.channel.backlog()).given_up:
                await lark.sim.lark.changed_within(0.05)
        await lark.say("and here?")
        assert await lark.until_replies(1) == ["too late"]


def told(lark: LarkGateway) -> list[str]:
    """Return the newest words of a person in each request that the model got."""
    found = []
    for request in lark.core.model.requests:
        content = request["messages"][-1]["content"]
        if isinstance(content, str):
            found.append(content)
        else:
            found.append("".join(part.get("text", "") for part in content))
    return found


def heard(lark: LarkGateway) -> list[EventPush]:
    """Return the messages on their way to the bot; its own reactions are events too."""
    return [push for push in lark.sim.pushes if push.message_id]


def reactions(lark: LarkGateway, message_id: str) -> list[str]:
    return [each.emoji for each in lark.sim.lark.state.messages[message_id].reactions]


def event(lark: LarkGateway, kind: str, open_id: str, message_id: str) -> dict[str, object]:
    return {
        "sender": {"sender_id": {"open_id": open_id}, "sender_type": kind},
        "message": {
            "message_id": message_id,
            "chat_id": lark.dm.chat_id,
            "chat_type": "p2p",
            "message_type": "text",
            "content": '{"text": "I am a bot"}',
        },
    }

"""The greeting of a chat, suggested messages, the menu, help and bare mentions."""

from pathlib import Path

import pytest

from internal.i18n.chat import ChatPhrases
from internal.settings.chat import ChatAccess, ChatChannelSettings
from internal.simulators.lark import user_actions
from internal.simulators.lark.model import Chat
from internal.simulators.lark.simulator import LarkSim
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import (
    APP,
    CONFIG,
    LarkGateway,
    open_lark,
    open_lark_gateway,
)
from tests.support.lark_runs import tasks, until_statuses
from tests.support.scripted_model import Reply, Rules

EN, ZH = ChatPhrases("en"), ChatPhrases("zh")
SUGGESTED = EN("suggest_abilities")
GREETS = ChatChannelSettings(react_emoji="off", progress="off")
HELP = EN.command_help("new")


def enter(lark: LarkGateway) -> None:
    user_actions.enter_chat(lark.sim.lark.state, lark.person.open_id, lark.dm.chat_id)


def add_to(lark: LarkGateway, group: Chat) -> None:
    state, person = lark.sim.lark.state, lark.person.open_id
    user_actions.set_bot_presence(state, person, group.chat_id, APP.app_id, present=False)
    user_actions.set_bot_presence(state, person, group.chat_id, APP.app_id, present=True)


def new_group(lark: LarkGateway, name: str) -> Chat:
    people = [each.open_id for each in lark.sim.people]
    return lark.sim.lark.state.add_group(name, people, [APP.app_id])


def buttons(lark: LarkGateway, chat: Chat) -> list[str]:
    """Return the labels of the buttons on the only message of the bot in a chat."""
    [message] = lark.from_bot(chat)
    card = lark.sim.card(message.message_id) or {}
    return [each["text"]["content"] for each in card["body"]["elements"] if "text" in each]


def words(lark: LarkGateway, chat: Chat) -> str:
    [message] = lark.from_bot(chat)
    card = lark.sim.card(message.message_id) or {}
    return str(card["body"]["elements"][0]["content"])


def choose(lark: LarkGateway, key: str) -> None:
    user_actions.choose_menu(lark.sim.lark.state, lark.person.open_id, APP.app_id, key)


async def test_a_direct_chat_is_greeted_once_whoever_serves_it(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("three examples")], GREETS) as lark:
        enter(lark)
        await lark.sim.until(lambda _: lark.from_bot())
        assert buttons(lark, lark.dm) == [
            EN(f"suggest_{each}") for each in ("abilities", "plan", "message")
        ]
        enter(lark)
        await lark.settled()
        async with open_lark(lark.core, lark.sim, GREETS):  # another process with the same database
            enter(lark)
            await lark.settled()
        assert len(lark.from_bot()) == 1


async def test_a_suggestion_starts_its_task_as_if_written_and_once(tmp_path: Path) -> None:
    async with open_lark_gateway(
        tmp_path, [Reply("three examples"), Reply("more")], GREETS
    ) as lark:
        enter(lark)
        await lark.sim.until(lambda _: lark.from_bot())
        [card] = lark.from_bot()
        shown = await lark.sim.click(lark.person, card.message_id, SUGGESTED)
        assert shown["toast"]["content"] == EN("suggestion_started")
        shown = await lark.sim.click(lark.person, card.message_id, SUGGESTED)
        assert shown["toast"]["content"] == EN("suggestion_known")
        await lark.sim.until(lambda _: len(lark.from_bot()) == 2)
        await lark.settled()
        [task] = await tasks(lark)
        assert (task.instruction, task.origin.principal.rsplit(":")[-1]) == (
            SUGGESTED,
            lark.person.open_id,
        )
        reply = lark.from_bot()[1]
        assert reply.parent_id == card.message_id
        await lark.say("and then?")  # it is the conversation of the chat
        await until_statuses(lark, "completed", "completed")
        assert len({each.session_id for each in await tasks(lark)}) == 1


async def test_a_chat_of_somebody_who_may_not_talk_is_not_greeted(tmp_path: Path) -> None:
    nobody = with_values(GREETS, access=ChatAccess(talk=("ou_nobody",)))
    async with open_lark_gateway(tmp_path, [Reply("no")], nobody) as lark:
        add_to(lark, group := new_group(lark, "Team"))
        enter(lark)
        await lark.settled()
        assert lark.from_bot(group) + lark.from_bot() == []


async def test_a_stranger_cannot_start_a_suggestion(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0, config=CONFIG) as sim:
        allowed = with_values(GREETS, access=ChatAccess(talk=(sim.people[0].open_id,)))
        async with open_lark_gateway(tmp_path, [Reply("no")], allowed, sim=sim) as lark:
            add_to(lark, group := new_group(lark, "Team"))
            await sim.until(lambda _: lark.from_bot(group))
            [card] = lark.from_bot(group)
            shown = await sim.click(sim.people[1], card.message_id, SUGGESTED)
            assert shown["toast"]["content"] == EN("not_allowed")
            await lark.settled()
            assert await tasks(lark) == []


async def test_a_group_is_greeted_once_in_the_language_of_its_name(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("x")], GREETS) as lark:
        group = new_group(lark, "产品讨论")
        add_to(lark, group)
        await lark.sim.until(lambda _: lark.from_bot(group))
        assert words(lark, group).startswith(ZH("greeting_group", help="/帮助")[:20])
        assert buttons(lark, group)[0] == ZH("suggest_abilities")
        add_to(lark, group)
        await lark.settled()
        assert len(lark.from_bot(group)) == 1


@pytest.mark.slow
async def test_a_greeting_can_be_switched_off_and_a_known_chat_gets_none(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("hi")] * 2, GREETS) as lark:
        await lark.say("hello")
        await lark.until_replies(1)
        enter(lark)
        await lark.settled()
        assert len(lark.from_bot()) == 1
    (tmp_path / "other").mkdir()
    async with open_lark_gateway(tmp_path / "other", [Reply("hi")]) as lark:
        enter(lark)
        add_to(lark, group := new_group(lark, "Team"))
        await lark.settled()
        assert lark.from_bot() + lark.from_bot(group) == []


async def test_a_menu_entry_is_a_command_in_the_direct_chat(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, Rules([Reply("never", hold="go")])) as lark:
        await lark.say("work")
        await lark.core.model.until_open(1)
        choose(lark, "status")
        [status] = await lark.until_replies(1)
        assert "work" in status
        choose(lark, "/stop")
        await until_statuses(lark, "cancelled")
        choose(lark, "no such entry")
        await lark.sim.until(lambda _: any(HELP in each for each in lark.replies()))


async def test_a_menu_entry_is_answered_before_the_first_message(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("x")]) as lark:
        choose(lark, "help")
        [reply] = await lark.until_replies(1)
        assert HELP in reply
        menu = lark.sim.pushes[-1]
        lark.sim.lark.delivery.emit(lark.sim.app, menu.event_type, menu.event)
        await lark.settled()
        assert len(lark.replies()) == 1  # the same choice under another event id


@pytest.mark.first_rows(2)
@pytest.mark.parametrize(
    ("text", "language"),
    [("help", EN), ("/hlep", EN), ("帮助", ZH), ("求助", ZH), ("Help?", EN), ("/stpo", EN)],
)
async def test_help_and_misspelt_commands_get_the_commands(
    tmp_path: Path, text: str, language: ChatPhrases
) -> None:
    async with open_lark_gateway(tmp_path, [Reply("a task")]) as lark:
        await lark.say(text)
        [reply] = await lark.until_replies(1)
        assert language.command_help("new") in reply
        assert ("Unknown command" in reply) == text.startswith("/")
        assert await tasks(lark) == []


async def test_a_bare_mention_is_told_what_to_do_and_acts_on_a_quote(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("about the quote")]) as lark:
        group, person = lark.group, lark.person
        await lark.sim.send_text(person, group, "", mention_bot=True)
        assert await lark.until_replies(1, group) == [EN("only_mention", help="/help")]
        first = await lark.sim.send_text(person, group, "the plan for May")
        await lark.sim.send_text(person, group, "", mention_bot=True, reply_to=first)
        assert (await lark.until_replies(2, group))[1] == "about the quote"
        assert "the plan for May" in str(lark.core.model.requests[-1])


async def test_malformed_events_of_first_contact_are_ignored(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("fine")]) as lark:
        for kind in (
            "im.chat.member.bot.added_v1",
            "im.chat.access_event.bot_p2p_chat_entered_v1",
            "application.bot.menu_v6",
            "im.message.reaction.created_v1",
        ):
            for event in ({}, {"chat_id": 7, "operator_id": "x", "event_key": ["help"]}):
                lark.sim.push(kind, event)
        await lark.say("still there?")
        assert await lark.until_replies(1) == ["fine"]

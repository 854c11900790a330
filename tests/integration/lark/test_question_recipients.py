"""Approvals in a chat without an operator reach people who may answer, through the real SDK."""

import asyncio
import base64
import json
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.questions import QuestionRecord
from internal.settings.chat import ChatAccess, ChatChannelSettings, ChatGroup
from internal.simulators.lark.model import TENANT, ChatMessage, Json, Person
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import open_agent, plan
from tests.support.anthropic_server import Reply
from tests.support.chat_settings import with_values
from tests.support.lark_chats import TOUCH, needs, open_questions
from tests.support.lark_gateway import (
    APP,
    QUIET,
    LarkGateway,
    lark_transport,
    open_lark,
    open_lark_gateway,
    question_outcome,
)


class Office:
    """A person without rights, the boss, and the deputy; the questions of that person."""

    def __init__(self, lark: LarkGateway, home: Path) -> None:
        self.lark, self.home = lark, home
        self.person, self.boss, self.deputy = lark.sim.people[:3]

    def cards(self, person: Person) -> list[ChatMessage]:
        """Return the messages with questions in the direct chat of a person."""
        sent = self.lark.from_bot(self.lark.sim.dm(person))
        return [one for one in sent if '"question_' in self.shown(one)]

    def shown(self, message: ChatMessage) -> str:
        card = self.lark.sim.card(message.message_id)
        return json.dumps(card or message.content, ensure_ascii=False)

    def title(self, person: Person) -> str:
        [card] = self.cards(person)
        return question_outcome(self.lark.sim.card(card.message_id) or {})

    async def give(self, person: Person, role: str) -> None:
        """Pair a person."""
        access = self.lark.core.services.gateway.access
        code = await access.create_code(role, LOCAL_OWNER, "cli")  # type: ignore[arg-type]  # a role
        name = f"lark:{APP.app_id}:{person.open_id}"
        await access.redeem_code(code.code, name, person.name, "lark")

    async def ask(self, *people: Person) -> QuestionRecord:
        """Have a command asked about in the direct chat; return when the copies are known."""
        await self.lark.say("touch it")
        [asked] = await open_questions(self.lark, 1)
        await self.lark.sim.until(lambda _: all(self.cards(one) for one in people))
        await self.lark.settled()
        return asked

    async def until_answered(self, *people: Person) -> str:
        """Return the principal that answered, once no message shows the question as open."""
        await self.lark.sim.until(lambda _: "over" in self.lark.replies())
        await self.lark.settled()
        assert [self.title(one) for one in people] == ["Allowed once"] * len(people)
        assert not any("button" in self.shown(self.cards(one)[0]) for one in people)
        queries = self.lark.core.services.gateway.queries
        [(ended, _)] = await queries.questions(LOCAL_OWNER, status="answered")
        assert ended.answer is not None
        return ended.answer.by

    async def say(self, person: Person, text: str, **more: Any) -> None:
        await self.lark.sim.send_text(person, self.lark.sim.dm(person), text, **more)

    def rows(self, what: str) -> list[str]:
        with closing(sqlite3.connect(self.home / "larkspur.db")) as database:
            return [row[0] for row in database.execute(what)]


@asynccontextmanager
async def open_office(
    home: Path,
    settings: ChatChannelSettings = QUIET,
    environ: dict[str, str] | None = None,
    sim: LarkSim | None = None,
) -> AsyncGenerator[Office]:
    async with open_lark_gateway(home, needs(TOUCH), settings, environ=environ, sim=sim) as lark:
        lark.sim.set_faults(limits=False)
        yield Office(lark, home)


def rows_of_matrix() -> list[tuple[str, str]]:
    """Return who may answer and how; the first rows stand for all operators and for all ways."""
    operators = ("listed", "operate", "owner")
    ways = ("button", "reply", "command", "word", "group", "page")
    first = [("listed", "button"), ("operate", "reply"), ("owner", "group")]
    return [*first, *((who, way) for way in ways for who in operators if (who, way) not in first)]


@pytest.mark.parametrize(("who", "way"), rows_of_matrix())
@pytest.mark.first_rows(3)
async def test_a_question_reaches_the_operators_of_a_direct_chat(
    tmp_path: Path, who: str, way: str
) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        operate = (sim.people[1].open_id,) if who == "listed" else ()
        settings = with_values(QUIET, access=ChatAccess(operate=operate))
        async with open_office(tmp_path, settings, sim=sim) as one:
            person, boss = one.person, one.boss
            if who != "listed":
                await one.give(boss, who)
            asked = await one.ask(person, boss)
            [own], [copy] = one.cards(person), one.cards(boss)
            assert "button" not in one.shown(own)
            assert f"Asked in direct chats: {boss.name}." in one.shown(own)
            assert "larkspur pair" in one.shown(own)
            assert "/pair" in one.shown(own)
            assert f"Task of {person.name}: touch it" in one.shown(copy)
            assert "touch ran" in one.shown(copy)
            assert "button" in one.shown(copy)
            assert one.cards(one.deputy) == []
            number = asked.question.id[-6:]
            match way:
                case "button":
                    done = await sim.click(boss, copy.message_id, "Allow once")
                    assert done["toast"]["content"] == "Allowed once"
                case "reply":
                    await one.say(boss, "OK", reply_to=copy.message_id)
                case "command":
                    await one.say(boss, f"/approve {number}")
                case "word":
                    await one.say(boss, f"OK {number}")
                case "group":
                    group = next(each for each in sim.groups if boss.open_id in each.members)
                    await sim.send_text(boss, group, f"/approve {number}", mention_bot=True)
                case _:
                    await one.lark.core.answer(asked.question.id, "approve", "")
            by = await one.until_answered(person, boss)
            assert by == ("local" if way == "page" else f"lark:{APP.app_id}:{boss.open_id}")


@pytest.mark.parametrize("public_url", ["", "https://larkspur.example"])
@pytest.mark.first_rows(1)
async def test_with_nobody_to_ask_the_card_leads_to_the_page(
    tmp_path: Path, public_url: str
) -> None:
    environ = {"LARKSPUR_SERVER__PUBLIC_URL": public_url} if public_url else {}
    async with open_office(tmp_path, environ=environ) as one:
        asked = await one.ask(one.person)
        shown = one.shown(one.cards(one.person)[0])
        assert "button" not in shown
        assert "The owner can answer until" in shown
        assert "It waits on the web page" in shown
        assert "larkspur pair" in shown
        link = f"[Open the web page]({public_url}/sessions/{asked.session_id})"
        assert (link in shown) == bool(public_url)
        assert one.rows("select key from outbox") == [f"{asked.question.id}:asked"]
        await one.give(one.person, "operate")
        await one.say(one.person, "OK")
        assert (await one.until_answered(one.person)).endswith(one.person.open_id)


async def test_the_first_of_several_operators_decides(tmp_path: Path) -> None:
    async with open_office(tmp_path) as one:
        boss, deputy = one.boss, one.deputy
        for each in (boss, deputy):
            await one.give(each, "operate")
        await one.give(one.lark.sim.people[3], "owner")
        asked = await one.ask(boss, deputy)
        keys = one.rows("select key from outbox where question_id <> '' order by number")
        name = asked.question.id
        copies = [f"{name}:copy:{each.open_id}" for each in (boss, deputy)]
        assert keys == [f"{name}:asked", *copies]
        first, second = (one.cards(each)[0].message_id for each in (boss, deputy))
        refused = await press(one, one.person, first, name)
        assert "doesn't belong to a question in this chat" in refused
        await one.lark.sim.click(boss, first, "Allow once")
        assert f"Already answered by {boss.name}" in await press(one, deputy, second, name)
        await one.until_answered(one.person, boss, deputy)
        assert not one.cards(one.lark.sim.people[3])


async def press(one: Office, person: Person, message_id: str, question_id: str) -> str:
    """Press the button that allows, whether or not the card still has it; return the shown text."""
    action: Json = {"tag": "button", "value": {"question": question_id, "act": "approve"}}
    chat = one.lark.sim.lark.state.messages[message_id].chat_id
    where = {"open_message_id": message_id, "open_chat_id": chat}
    who = {**person.ids(), "tenant_key": TENANT}
    event = {"operator": who, "token": "c-1", "action": action, "context": where}
    ack = await one.lark.sim.lark.delivery.call_back(one.lark.sim.app, event)
    assert ack is not None
    return str(json.loads(base64.b64decode(ack.data or ""))["toast"]["content"])


async def test_operators_list_and_answer_what_was_asked_elsewhere(tmp_path: Path) -> None:
    async with open_office(tmp_path) as one:
        boss, deputy, sim = one.boss, one.deputy, one.lark.sim
        await one.give(boss, "operate")
        asked = await one.ask(boss)
        number = asked.question.id[-6:]
        before = len(one.lark.replies(sim.dm(boss)))
        await one.say(boss, "/questions")
        listed = (await one.lark.until_replies(before + 1, sim.dm(boss)))[-1]
        assert f"`{number}` approval, for {one.person.name}: touch ran" in listed
        group = next(each for each in sim.groups if boss.open_id in each.members)
        await sim.send_text(boss, group, "/questions", mention_bot=True)
        listed = (await one.lark.until_replies(1, group))[-1]
        assert "Questions of other chats that you can answer: 1." in listed
        assert "touch ran" not in listed
        for count, text in enumerate(("OK", "/approve"), before + 2):
            await one.say(boss, text)  # it is not said for which question
            said = (await one.lark.until_replies(count, sim.dm(boss)))[-1]
            assert "Which question do you mean?" in said
        for count, text in enumerate(("/questions", f"/approve {number}"), 1):
            await one.say(deputy, text)
            said = (await one.lark.until_replies(count, sim.dm(deputy)))[-1]
            assert "No open question" in said
        assert await open_questions(one.lark, 1) == [asked]
        await one.say(boss, f"/reject {number} not today")
        await one.lark.sim.until(lambda _: "over" in one.lark.replies())
        assert "not today" in json.dumps(one.lark.core.model.requests[-1]["messages"])


@pytest.mark.slow
async def test_an_operator_everywhere_is_not_asked_elsewhere(tmp_path: Path) -> None:
    everyone = with_values(QUIET, access=ChatAccess(operate=("*",)))
    async with open_office(tmp_path, everyone) as one:
        await one.give(one.boss, "operate")
        asked = await one.ask(one.person)
        assert one.rows("select key from outbox") == [f"{asked.question.id}:asked"]
        await one.say(one.deputy, f"/approve {asked.question.id}")  # `*` holds in one's own chats
        said = (await one.lark.until_replies(1, one.lark.sim.dm(one.deputy)))[-1]
        assert "No open question" in said
        await one.lark.sim.click(one.person, one.cards(one.person)[0].message_id, "Allow once")
        await one.until_answered(one.person)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "asked"),
    [
        ("off", []),
        ("owner", ["owner"]),
        ("boss", ["boss"]),
        ("person", []),
        ("operators", ["boss"]),
    ],
)
async def test_the_settings_choose_the_recipients(
    tmp_path: Path, wanted: str, asked: list[str]
) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        people = dict(zip(("person", "boss", "owner"), sim.people, strict=False))
        names = people[wanted].open_id if wanted in {"boss", "person"} else wanted
        async with open_office(
            tmp_path, with_values(QUIET, question_recipients=names), sim=sim
        ) as one:
            await one.give(people["boss"], "operate")
            await one.give(people["owner"], "owner")
            await one.ask(*(people[each] for each in asked))
            found = [name for name in ("boss", "owner") if one.cards(people[name])]
            assert found == asked
            assert "button" not in one.shown(one.cards(one.person)[0])


@pytest.mark.slow
@pytest.mark.parametrize("listed", [True, False])
async def test_in_a_group_only_a_card_that_somebody_may_answer_has_buttons(
    tmp_path: Path, *, listed: bool
) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        group = sim.groups[0]
        groups = {group.chat_id: ChatGroup(operate=(sim.people[1].open_id,) if listed else ())}
        async with open_office(tmp_path, with_values(QUIET, groups=groups), sim=sim) as one:
            await sim.send_text(one.person, group, "touch it", mention_bot=True)
            await open_questions(one.lark, 1, group)
            await one.lark.settled()
            [card] = [each for each in one.lark.from_bot(group) if '"question_' in one.shown(each)]
            assert ("button" in one.shown(card)) == listed
            assert one.cards(one.boss) == []


async def test_copies_survive_a_restart(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("do it")]), Reply(calls=[TOUCH], hold="go"), Reply("over")]
    async with LarkSim([APP], speed=100.0) as sim, open_agent(tmp_path, script) as here:
        sim.set_faults(limits=False)
        transport = lark_transport(here, sim, QUIET)
        async with open_lark(here, sim, QUIET, transport=transport) as channel:
            one = Office(LarkGateway(sim, here, channel, transport), tmp_path)
            await one.give(one.boss, "operate")
            await one.lark.say("touch it")
            await here.model.until_asked(2)
        here.model.release("go")
        async with asyncio.timeout(20):
            while not one.rows("select key from outbox where question_id <> ''"):
                await sim.lark.changed_within(0.05)
        assert one.cards(one.boss) == []
        async with open_lark(here, sim, QUIET) as channel:
            one.lark.channel = channel
            await sim.until(lambda _: bool(one.cards(one.boss)))
            await one.lark.settled()
            await sim.click(one.boss, one.cards(one.boss)[0].message_id, "Allow once")
            await one.until_answered(one.person, one.boss)
            assert len(one.cards(one.boss)) == 1

"""People are alerted to approvals that wait, once for each question; through the real SDK."""

import logging
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

import pytest

from internal.settings.chat import ChatAccess, ChatChannelSettings
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import URGENT, App, ChatMessage
from internal.simulators.lark.simulator import LarkSim
from tests.support.chat_settings import with_values
from tests.support.lark_chats import TOUCH, needs, open_questions
from tests.support.lark_gateway import APP, QUIET, LarkGateway, open_lark, open_lark_gateway

LOUD = replace(APP, scopes=APP.scopes | {URGENT})
SLOW = with_values(QUIET, access=ChatAccess(operate=("*",)))
QUICK = with_values(SLOW, urgent_after_minutes=5)


@asynccontextmanager
async def ask(
    home: Path, app: App = LOUD, *, operator: int | None = None, minutes: int = 6
) -> AsyncGenerator[LarkGateway]:
    """Have a command asked about some minutes ago, by a gateway that has stopped since.

    Everybody is an operator, or only the person with that number.
    """
    async with (
        LarkSim([app], speed=100.0) as sim,
        open_lark_gateway(home, needs(TOUCH), operators(sim, operator), sim=sim) as lark,
    ):
        await lark.say("touch it")
        await open_questions(lark, 1)
        await lark.settled()
        lark.channel.stop()
        await sim.until(lambda _: not sim.lark.delivery.connections)
        with closing(sqlite3.connect(home / "larkspur.db")) as database, database:
            [(asked,)] = database.execute("select asked from questions").fetchall()
            ago = f"strftime('%Y-%m-%dT%H:%M:%fZ', '{asked}', '-{minutes} minutes')"
            database.execute(f"update questions set asked = {ago}")  # noqa: S608 - own text
        yield lark


def operators(sim: LarkSim, number: int | None = None) -> ChatChannelSettings:
    ids = "*" if number is None else sim.people[number].open_id
    return with_values(QUIET, access=ChatAccess(operate=(ids,)))


def urged(lark: LarkGateway) -> list[ChatMessage]:
    return [each for each in lark.sim.lark.state.messages.values() if each.urgent]


def calls(lark: LarkGateway) -> int:
    return sum("urgent_app" in entry.what for entry in lark.sim.log)


async def test_who_asked_is_alerted_once_also_after_a_restart(tmp_path: Path) -> None:
    async with ask(tmp_path) as lark:
        for _ in range(2):
            async with open_lark(lark.core, lark.sim, QUICK) as channel:
                await lark.sim.until(lambda _: urged(lark))
                assert not channel.problem
        assert calls(lark) == 1
        [card] = urged(lark)
        assert card.urgent == [lark.person.open_id]
        assert card.message_id == lark.from_bot()[0].message_id


@pytest.mark.slow
async def test_the_operators_who_got_a_copy_are_alerted(tmp_path: Path) -> None:
    async with ask(tmp_path, operator=1) as lark:
        quick = with_values(operators(lark.sim, 1), urgent_after_minutes=5)
        async with open_lark(lark.core, lark.sim, quick):
            await lark.sim.until(lambda _: urged(lark))
        [copy] = urged(lark)
        boss = lark.sim.people[1]
        assert copy.urgent == [boss.open_id]
        assert copy.chat_id == lark.sim.dm(boss).chat_id


async def test_a_missing_scope_is_told_once_and_the_question_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ask(tmp_path, APP) as lark, open_lark(lark.core, lark.sim, QUICK) as channel:
        with caplog.at_level(logging.WARNING):
            await lark.sim.until(lambda _: calls(lark) == 1)
            while not channel.problem:
                await lark.sim.lark.changed_within(0.02)
        assert "99991672" in channel.problem
        assert [each.message for each in caplog.records].count(
            "urgent messages need a permission"
        ) == 1
        card = lark.from_bot()[0].message_id
        response = await lark.sim.click(lark.person, card, "Allow once")
        assert response["toast"]["content"] == "Allowed once"
        assert "over" in await lark.until_replies(1)


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "again"), [("rate_limit", 1), ("lost", 0), ("bad_gateway", 0)])
async def test_a_call_that_may_have_been_carried_out_is_not_repeated_later(
    tmp_path: Path, fault: str, again: int
) -> None:
    async with ask(tmp_path) as lark:
        lark.sim.faults.answers.append(AnswerFault(fault, "urgent_app", times=1))
        async with open_lark(lark.core, lark.sim, QUICK):
            await lark.sim.until(lambda _: calls(lark))
            await lark.settled()
        before = calls(lark)
        async with open_lark(lark.core, lark.sim, QUICK):
            await lark.sim.until(lambda _: calls(lark) == before + again)
            await lark.say("/status")
            await lark.settled()
        assert calls(lark) == before + again


@pytest.mark.slow
async def test_nobody_is_alerted_early_and_without_the_setting(tmp_path: Path) -> None:
    async with ask(tmp_path, minutes=4) as lark:
        for settings in (QUICK, SLOW):
            async with open_lark(lark.core, lark.sim, settings):
                await lark.say("/status")
                await lark.settled()
        assert not urged(lark)
        assert calls(lark) == 0

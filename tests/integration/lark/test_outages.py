"""Replies during an outage of over an hour, with and without the scope to look for them."""

from datetime import timedelta
from pathlib import Path

import pytest

from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import GROUP_MESSAGES, App
from internal.simulators.lark.simulator import LarkSim
from tests.support.lark_gateway import APP
from tests.support.lark_outbox import open_outbox
from tests.support.ports import free_port

pytestmark = pytest.mark.parametrize("is_scope_granted", [True, False], ids=["scope", "no scope"])

UNRESOLVED = "I can't check whether you received the answer"


def app(*, is_scope_granted: bool) -> App:
    scopes = APP.scopes | {GROUP_MESSAGES} if is_scope_granted else APP.scopes
    return App(APP.app_id, APP.secret, scopes=scopes)


HOUR = timedelta(seconds=3_700)
"""After this Lark has forgotten the uuids."""


@pytest.mark.first_rows(1)
async def test_replies_that_never_left_are_sent(tmp_path: Path, is_scope_granted: bool) -> None:
    sim = LarkSim([app(is_scope_granted=is_scope_granted)], port=free_port())
    group = sim.groups[0]
    async with open_outbox(tmp_path, sim) as outbox:
        for number in range(3):
            await outbox.promise(str(number), group.chat_id, "", f"answer {number}")
        await outbox.until_postponed()
        outbox.let_pass(HOUR)
        await outbox.until_postponed(2)
        outbox.let_pass(HOUR)
        async with sim:
            outbox.sender.wake()
            await outbox.until_due(0)
            assert outbox.said(group) == ["answer 0", "answer 1", "answer 2"]
            assert not any("GET" in entry.what for entry in sim.log)
        assert await outbox.dead() == []


@pytest.mark.parametrize(
    "fault",
    [
        AnswerFault("rate_limit", "/reply", seconds=0.1),
        AnswerFault("code", "/reply", code=11232),
        AnswerFault("code", "/reply", code=2200, status=500),
        AnswerFault("code", "/tenant_access_token", code=10014),
    ],
    ids=["busy", "throttled", "error of Lark", "no token"],
)
@pytest.mark.first_rows(2)
async def test_replies_that_lark_did_not_accept_are_sent(
    tmp_path: Path, is_scope_granted: bool, fault: AnswerFault
) -> None:
    async with (
        LarkSim([app(is_scope_granted=is_scope_granted)]) as sim,
        open_outbox(tmp_path, sim) as outbox,
    ):
        group = sim.groups[0]
        asked = await sim.send_text(sim.people[0], group, "hello", mention_bot=True)
        fault = AnswerFault(
            fault.kind, fault.match, 1_000, fault.seconds, fault.code, status=fault.status
        )
        sim.faults.answers.append(fault)
        await outbox.promise("1", group.chat_id, asked, "once")
        await outbox.until_postponed()
        fault.times = 0
        outbox.let_pass(HOUR)
        await outbox.until_due(0)
        assert outbox.said(group) == ["once"]
        assert await outbox.dead() == []


@pytest.mark.parametrize("kind", ["lost", "bad_gateway"], ids=["sent", "not sent"])
@pytest.mark.first_rows(1)
async def test_replies_with_unknown_outcome_are_looked_for(
    tmp_path: Path, is_scope_granted: bool, kind: str
) -> None:
    async with (
        LarkSim([app(is_scope_granted=is_scope_granted)]) as sim,
        open_outbox(tmp_path, sim) as outbox,
    ):
        group = sim.groups[0]
        asked = await sim.send_text(sim.people[0], group, "hello", mention_bot=True)
        fault = AnswerFault(kind, "/reply", times=1_000)
        sim.faults.answers.append(fault)
        await outbox.promise("1", group.chat_id, asked, "once")
        await outbox.until_postponed()
        fault.times = 0
        outbox.let_pass(HOUR)
        await outbox.until_due(0)
        said, letters = outbox.said(group), await outbox.dead()
        if is_scope_granted:
            assert said == ["once"]
            assert letters == []
        else:
            assert said[:-1] == (["once"] if kind == "lost" else [])
            assert UNRESOLVED in (said[-1] or "")
            [letter] = letters
            assert letter.unconfirmed
            assert letter.outgoing.body == "once"
            assert "230027" in letter.failure

"""Findings of `larkspur doctor` about the app, over a simulated Lark that lacks requirements."""

import asyncio
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from internal.channels.cli.commands.context import CommandContext
from internal.channels.cli.commands.registry import dispatch
from internal.channels.lark.app_check import AppFinding, check_app
from internal.config.loader import load
from internal.observability.clock import SystemClock
from internal.settings.lark import LarkSettings
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import DEFAULT_EVENTS, GROUP_MESSAGES, URGENT, App
from internal.simulators.lark.simulator import LarkSim
from larkspur.application import Application
from tests.support.lark_gateway import APP

COMPLETE = replace(APP, scopes=APP.scopes | {GROUP_MESSAGES})
INFO = "application:application:self_manage"


def settings(sim: LarkSim, app: App, **changes: Any) -> LarkSettings:
    values = {"app_id": app.app_id, "app_secret": app.secret, "domain": sim.url}
    return LarkSettings.model_validate({"enabled": True, **values, **changes})


async def checked(app: App) -> list[AppFinding]:
    async with LarkSim([app]) as sim:
        return await check_app(settings(sim, app), SystemClock())


async def test_an_app_with_everything_is_fine() -> None:
    assert [finding.state for finding in await checked(COMPLETE)] == ["ok"]


async def test_nothing_is_asked_while_the_channel_is_off() -> None:
    async with LarkSim([APP]) as sim:
        found = await check_app(settings(sim, APP, enabled=False), SystemClock())
        assert [finding.state for finding in found] == ["ok"]
        assert sim.log == []


async def test_the_scope_for_urgent_messages_is_needed_only_with_the_setting() -> None:
    urgent = replace(COMPLETE, scopes=COMPLETE.scopes | {URGENT})
    for app, states in ((COMPLETE, ["warn"]), (urgent, ["ok"])):
        async with LarkSim([app]) as sim:
            found = await check_app(settings(sim, app, urgent_after_minutes=5), SystemClock())
            assert [finding.state for finding in found] == states
            assert (URGENT in found[0].sentence) == (states == ["warn"])


@pytest.mark.parametrize(
    ("scope", "state", "consequence"),
    [
        ("im:message:send_as_bot", "fail", "no reply can be sent"),
        ("im:message.p2p_msg:readonly", "fail", "direct messages are not received"),
        ("im:message.group_at_msg:readonly", "fail", "mentions in groups are not received"),
        ("im:message:readonly", "warn", "quoted messages cannot be read"),
        ("im:message.reactions:write_only", "warn", "get no reaction"),
        ("im:resource", "warn", "as files"),
        (GROUP_MESSAGES, "warn", "only mentions are received"),
        ("contact:user.base:readonly", "warn", "people have no names"),
        ("im:chat.members:read", "warn", "cannot mention people"),
        ("tenant:tenant:readonly", "warn", "organization"),
    ],
)
async def test_a_missing_scope_is_named_with_what_stops_working(
    scope: str, state: str, consequence: str
) -> None:
    scopes = COMPLETE.scopes - {scope}
    if scope == "im:message.group_at_msg:readonly":  # the wider one includes mentions
        scopes -= {GROUP_MESSAGES}
    found = await checked(replace(COMPLETE, scopes=scopes))
    finding = next(one for one in found if f"The scope {scope} is missing" in one.sentence)
    assert finding.state == state
    assert consequence in finding.sentence
    assert f"/app/{APP.app_id}/auth" in finding.advice


async def test_a_wider_scope_is_enough() -> None:
    narrow = {"im:message:send_as_bot", "im:message:readonly", "im:message.reactions:write_only"}
    found = await checked(replace(COMPLETE, scopes=(COMPLETE.scopes - narrow) | {"im:message"}))
    assert [finding.state for finding in found] == ["ok"]


@pytest.mark.parametrize(
    ("changes", "state", "sentence"),
    [
        ({"events": frozenset()}, "fail", "The event im.message.receive_v1 is missing"),
        *(
            ({"events": DEFAULT_EVENTS - {event}}, "warn", f"The event {event} is missing")
            for event in sorted(DEFAULT_EVENTS - {"im.message.receive_v1"})
        ),
        ({"callbacks": frozenset()}, "fail", "The callback card.action.trigger is missing"),
    ],
)
async def test_a_missing_subscription_is_named(
    changes: dict[str, Any], state: str, sentence: str
) -> None:
    found = await checked(replace(COMPLETE, **changes))
    assert found[0].state == state
    assert found[0].sentence.startswith(sentence)
    assert f"/app/{APP.app_id}/event" in found[0].advice


async def test_subscriptions_that_may_not_be_read_are_a_warning() -> None:
    (finding,) = await checked(replace(COMPLETE, scopes=COMPLETE.scopes - {INFO}))
    assert finding.state == "warn"
    assert f"cannot be checked: the scope {INFO}" in finding.sentence


@pytest.mark.parametrize(
    ("app", "code"), [(COMPLETE, 0), (replace(COMPLETE, callbacks=frozenset()), 3)]
)
async def test_doctor_fails_if_something_essential_is_missing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], app: App, code: int
) -> None:
    async with LarkSim([app]) as sim:
        environ = {
            "LARKSPUR_HOME": str(tmp_path),
            "LARKSPUR_CHANNELS__LARK__ENABLED": "true",
            "LARKSPUR_CHANNELS__LARK__APP_ID": app.app_id,
            "LARKSPUR_CHANNELS__LARK__APP_SECRET": app.secret,
            "LARKSPUR_CHANNELS__LARK__DOMAIN": sim.url,
        }
        application = Application(partial(load, environ=environ))
        context = CommandContext(lambda: application, "1.2.3")
        assert await asyncio.to_thread(dispatch, ["doctor", "--json"], context) == code
    checks = json.loads(capfd.readouterr().out)
    assert [one["state"] for one in checks if one["name"] == "lark"] == ["fail" if code else "ok"]


async def test_wrong_credentials_are_essential() -> None:
    async with LarkSim([APP]) as sim:
        wrong = settings(sim, APP, app_secret=APP.app_id)
        (finding,) = await check_app(wrong, SystemClock())
    assert finding.state == "fail"
    assert "no access token" in finding.sentence
    assert "app_secret" in finding.advice


async def test_an_app_without_a_bot_is_named() -> None:
    async with LarkSim([COMPLETE]) as sim:
        sim.faults.answers.append(AnswerFault("code", "GET /open-apis/bot/v3/info", code=230006))
        (finding,) = await check_app(settings(sim, COMPLETE), SystemClock())
    assert finding.state == "fail"
    assert finding.sentence.startswith("The app has no bot:")

"""Calls and events need the scopes that Lark documents."""

import secrets
from dataclasses import replace

import pytest

from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import DEFAULT_SCOPES, GROUP_MESSAGES, App, Chat
from internal.simulators.lark.simulator import LarkSim
from tests.support.lark_sdk import Bot, Sdk


def new_app(scopes: frozenset[str]) -> App:
    return App(f"cli_{secrets.token_hex(8)}", "a secret", scopes=scopes)


def listing(chat: Chat) -> dict[str, str]:
    return {"container_id_type": "chat", "container_id": chat.chat_id}


async def test_listing_a_group_needs_the_scope_for_all_of_its_messages(sdk: Sdk) -> None:
    async with LarkSim([new_app(DEFAULT_SCOPES)]) as sim:
        bot, group, dm = Bot(sdk, sim, sim.app), sim.groups[0], sim.dm(sim.people[0])
        code, answer = await bot.ask("GET", "/im/v1/messages", None, **listing(group))
        assert (code, answer["http"]) == (230027, 400)
        assert f"need scope: {GROUP_MESSAGES}" in answer["msg"]
        assert (await bot.ask("GET", "/im/v1/messages", None, **listing(dm)))[0] == 0
        sim.lark.state.apps[sim.app.app_id] = replace(
            sim.app, scopes=DEFAULT_SCOPES | {GROUP_MESSAGES}
        )
        assert (await bot.ask("GET", "/im/v1/messages", None, **listing(group)))[0] == 0


@pytest.mark.parametrize(
    ("scope", "method", "path"),
    [
        ("im:message:readonly", "GET", "/im/v1/messages/{message}"),
        ("im:message:readonly", "GET", "/im/v1/messages"),
        ("im:message:send_as_bot", "POST", "/im/v1/messages/{message}/reply"),
        ("im:message:send_as_bot", "PATCH", "/im/v1/messages/{message}"),
        ("im:message.reactions:write_only", "POST", "/im/v1/messages/{message}/reactions"),
        ("im:resource", "POST", "/im/v1/files"),
        ("contact:user.base:readonly", "GET", "/contact/v3/users/{person}"),
        ("tenant:tenant:readonly", "GET", "/tenant/v2/tenant/query"),
    ],
)
async def test_a_call_without_its_scope_is_refused(
    sdk: Sdk, scope: str, method: str, path: str
) -> None:
    async with LarkSim([new_app(DEFAULT_SCOPES - {scope})]) as sim:
        bot, person = Bot(sdk, sim, sim.app), sim.people[0]
        asked = await sim.send_text(person, sim.dm(person), "hello")
        ready = path.format(message=asked, person=person.open_id)
        code, answer = await bot.ask(method, ready, None if method == "GET" else {})
        assert code == 99991672
        assert scope in answer["msg"]
        assert (await bot.ask("GET", "/bot/v3/info"))[0] == 0


@pytest.mark.parametrize(
    ("scopes", "heard"),
    [
        (DEFAULT_SCOPES, ["direct", "mention"]),
        (DEFAULT_SCOPES | {GROUP_MESSAGES}, ["direct", "mention", "group"]),
        (DEFAULT_SCOPES - {"im:message.group_at_msg:readonly"}, ["direct"]),
        (DEFAULT_SCOPES - {"im:message.p2p_msg:readonly"}, ["mention"]),
    ],
    ids=["default", "all messages", "no mentions", "no direct ones"],
)
async def test_which_messages_an_app_receives(scopes: frozenset[str], heard: list[str]) -> None:
    async with LarkSim([new_app(scopes)]) as sim:
        person, group = sim.people[0], sim.groups[0]
        sent = {
            await sim.send_text(person, sim.dm(person), "hi"): "direct",
            await sim.send_text(person, group, "hi", mention_bot=True): "mention",
            await sim.send_text(person, group, "hi"): "group",
        }
        assert [sent[push.message_id] for push in sim.pushes] == heard


async def test_faults_of_an_error_with_a_status_and_of_a_success_without_data(
    bot: Bot, sim: LarkSim
) -> None:
    chat = sim.dm(sim.people[0]).chat_id
    failed = AnswerFault("code", "/messages", times=1, code=2200, status=500, content="poison")
    sim.faults.answers.append(failed)
    assert (await bot.send(chat, {"text": "fine"}))[0] == 0
    code, answer = await bot.send(chat, {"text": "poison"})
    assert (code, answer["http"]) == (2200, 500)
    sim.faults.answers.append(AnswerFault("no_data", "/messages", times=1))
    code, answer = await bot.send(chat, {"text": "executed"})
    assert code == 0
    assert not answer.get("data")
    texts = [one.content for one in sim.messages(chat)]
    assert texts == ['{"text":"fine"}', '{"text":"executed"}']


async def test_an_app_reads_its_own_scopes_events_and_callbacks(sdk: Sdk) -> None:
    app = replace(new_app(DEFAULT_SCOPES), events=frozenset({"im.message.receive_v1"}))
    async with LarkSim([app]) as sim:
        bot = Bot(sdk, sim, app)
        _, answer = await bot.ask("GET", "/application/v6/scopes")
        granted = {
            one["scope_name"] for one in answer["data"]["scopes"] if one["grant_status"] == 1
        }
        assert granted == DEFAULT_SCOPES
        path = f"/application/v6/applications/{app.app_id}"
        assert (await bot.ask("GET", path))[0] == 99992402  # the language is required
        _, answer = await bot.ask("GET", path, lang="zh_cn")
        info = answer["data"]["app"]
        assert info["callback_info"]["subscribed_callbacks"] == ["card.action.trigger"]
        version = info["online_version_id"]
        _, answer = await bot.ask("GET", f"{path}/app_versions/{version}", lang="zh_cn")
        events = answer["data"]["app_version"]["event_infos"]
        assert [one["event_type"] for one in events] == ["im.message.receive_v1"]
        other = "/application/v6/applications/cli_other"
        assert (await bot.ask("GET", other, lang="zh_cn"))[0] == 210508


async def test_an_app_without_the_scope_does_not_read_its_events(sdk: Sdk) -> None:
    app = new_app(DEFAULT_SCOPES - {"application:application:self_manage"})
    async with LarkSim([app]) as sim:
        bot = Bot(sdk, sim, app)
        path = f"/application/v6/applications/{app.app_id}"
        assert (await bot.ask("GET", path, lang="zh_cn"))[0] == 99991672
        assert (await bot.ask("GET", "/application/v6/scopes"))[0] == 0

"""Rejected calls: error codes, HTTP status and headers."""

import asyncio
import json
from typing import Any

import pytest

from internal.simulators.lark import user_actions
from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.model import App
from internal.simulators.lark.rest.im_media import store_file
from internal.simulators.lark.simulator import LarkSim
from tests.integration.lark_simulator.cards import card, markdown
from tests.support.lark_sdk import Bot, Sdk

TEXT = {"text": "hi"}
DAY = 86_400.0


@pytest.fixture
def chat(sim: LarkSim) -> str:
    sim.set_faults(limits=False)
    return sim.groups[0].chat_id


@pytest.mark.parametrize(
    ("kind", "content", "code", "why"),
    [
        ("text", "hi", 230001, "json format"),
        ("text", "[]", 230001, "object"),
        ("text", {}, 230001, "text is missing"),
        ("text", {"text": ""}, 230001, "empty"),
        ("text", {"text": "x" * 150 * 1024}, 230025, "too long"),
        ("nonsense", {}, 230001, "msg_type"),
        ("post", {"post": {"zh_cn": {}}}, 230001, "outer post"),
        ("post", {"zh_cn": {"title": ""}}, 230001, "content"),
        ("post", {}, 230001, "language"),
        ("post", {"zh_cn": {"content": ["x"]}}, 230001, "list"),
        ("post", {"zh_cn": {"content": [[{"tag": "h1"}]]}}, 230001, "tag"),
        ("post", {"zh_cn": {"content": [[{"tag": "md"}]]}}, 230001, "text"),
        ("post", {"zh_cn": {"content": [[{"tag": []}, 7]]}}, 230001, "tag"),
        ("media", {"file_key": "x", "image_key": []}, 230001, "image_key"),
        ("post", {"zh_cn": {"content": [[{"tag": "md", "text": "x" * 31000}]]}}, 230025, "long"),
        ("image", {}, 230001, "image_key"),
        ("image", {"image_key": "img_of_another"}, 230017, "belong"),
        ("file", {"file_key": "file_of_another"}, 230017, "belong"),
        ("interactive", {"type": "card", "data": {"card_id": "1"}}, 230099, "card_id"),
        ("interactive", {"type": "template", "data": {}}, 230099, "template"),
    ],
)
async def test_content_is_checked_by_type(
    bot: Bot, chat: str, kind: str, content: Any, code: int, why: str
) -> None:
    said, answer = await bot.send(chat, content, kind)
    assert (said, answer["http"]) == (code, 400), answer
    assert why in answer["msg"]
    assert answer["error"]["log_id"]
    assert bot.sim.messages(chat) == []


async def test_the_receiver_must_exist_and_include_the_bot(bot: Bot, sim: LarkSim) -> None:
    assert (await bot.send("oc_nobody", TEXT))[0] == 230001
    person, group = sim.people[0], sim.groups[0]
    user_actions.set_bot_presence(
        sim.lark.state, person.open_id, group.chat_id, bot.app.app_id, present=False
    )
    assert (await bot.send(group.chat_id, TEXT))[0] == 230002
    query = {"container_id_type": "chat", "container_id": group.chat_id}
    assert (await bot.ask("GET", "/im/v1/messages", None, **query))[0] == 230002
    assert (await bot.ask("GET", f"/im/v1/chats/{group.chat_id}"))[0] == 232011
    body = {"receive_id": person.open_id, "msg_type": "text", "content": json.dumps(TEXT)}
    assert (await bot.ask("POST", "/im/v1/messages", body, receive_id_type="x"))[0] == 99992402
    for kind, receiver in person.ids().items():
        sent = await bot.ask(
            "POST", "/im/v1/messages", {**body, "receive_id": receiver}, receive_id_type=kind
        )
        assert sent[0] == 0


async def test_a_uuid_is_sent_once_within_an_hour(bot: Bot, sim: LarkSim, chat: str) -> None:
    first = await bot.sent(chat, TEXT, uuid="u")
    assert await bot.sent(chat, {"text": "other"}, uuid="u") == first
    body = {"msg_type": "text", "content": json.dumps(TEXT), "uuid": "u"}
    _, answer = await bot.ask("POST", f"/im/v1/messages/{first}/reply", body)
    assert answer["data"]["message_id"] == first
    sim.lark.clock.advance(3600)
    assert await bot.sent(chat, TEXT, uuid="u") != first
    assert len(sim.messages(chat)) == 2
    assert (await bot.send(chat, TEXT, uuid="u" * 51))[0] == 99992402
    await bot.sent(chat, TEXT, uuid="u" * 50)


async def test_concurrent_sends_with_one_uuid_arrive_once(
    bot: Bot, sim: LarkSim, chat: str
) -> None:
    async with asyncio.TaskGroup() as tasks:
        sends = [tasks.create_task(bot.sent(chat, TEXT, uuid="same")) for _ in range(16)]
    assert len({one.result() for one in sends}) == 1
    assert len(sim.messages(chat)) == 1


async def test_a_text_can_be_edited_twenty_times(bot: Bot, sim: LarkSim, chat: str) -> None:
    sent = await bot.sent(chat, TEXT)
    body = {"msg_type": "text", "content": json.dumps(TEXT)}
    codes = [(await bot.ask("PUT", f"/im/v1/messages/{sent}", body))[0] for _ in range(21)]
    assert codes == [0] * 20 + [230072]
    shown = await bot.sent(chat, card(), "interactive")
    assert (await bot.ask("PUT", f"/im/v1/messages/{shown}", body))[0] == 230054


async def test_other_senders_messages_cannot_be_changed(bot: Bot, sim: LarkSim, chat: str) -> None:
    asked = await sim.send_text(sim.people[0], chat, "mine")
    body = {"msg_type": "text", "content": json.dumps(TEXT)}
    patch = {"content": json.dumps(card())}
    path = f"/im/v1/messages/{asked}"
    assert (await bot.ask("PUT", path, body))[0] == 230071
    assert (await bot.ask("PATCH", path, patch))[0] == 230012
    assert (await bot.ask("DELETE", path))[0] == 230026
    assert sim.messages(chat)[0].content == '{"text":"mine"}'


async def test_a_recalled_message_cannot_be_changed(bot: Bot, sim: LarkSim, chat: str) -> None:
    asked = await sim.send_text(sim.people[0], chat, "never mind")
    sent = await bot.sent(chat, card(), "interactive")
    user_actions.recall(sim.lark.state, sim.people[0].open_id, asked)
    assert (await bot.ask("DELETE", f"/im/v1/messages/{sent}"))[0] == 0
    body = {"msg_type": "text", "content": json.dumps(TEXT)}
    assert (await bot.ask("POST", f"/im/v1/messages/{asked}/reply", body))[0] == 230011
    patch = {"content": json.dumps(card())}
    assert (await bot.ask("PATCH", f"/im/v1/messages/{sent}", patch))[0] == 230011
    _, answer = await bot.ask("GET", f"/im/v1/messages/{asked}")
    (item,) = answer["data"]["items"]
    assert (item["deleted"], item["body"]["content"]) == (True, "This message was recalled")
    react = {"reaction_type": {"emoji_type": "OK"}}
    assert (await bot.ask("POST", f"/im/v1/messages/{asked}/reactions", react))[0] == 231003


async def test_only_shared_and_recent_cards_are_patched(bot: Bot, sim: LarkSim, chat: str) -> None:
    async def patch(message: str, content: Any) -> int:
        body = {"content": json.dumps(content)}
        return (await bot.ask("PATCH", f"/im/v1/messages/{message}", body))[0]

    alone = await bot.sent(chat, card(update_multi=False), "interactive")
    shared = await bot.sent(chat, card(), "interactive")
    assert await patch(alone, card()) == 230001
    assert await patch(shared, card(update_multi=False)) == 230001
    assert await patch(await bot.sent(chat, TEXT), card()) == 230001
    assert await patch("om_nothing", card()) == 230001
    assert await patch(shared, card(markdown("x" * 31_000))) == 230025
    for _ in range(30):
        assert await patch(shared, card()) == 0
    sim.lark.clock.advance(14 * DAY + 1)
    bot.forget_token()
    assert await patch(shared, card()) == 230031


async def test_chats_and_messages_are_rate_limited(bot: Bot, sim: LarkSim) -> None:
    sim.lark.clock.hold()
    chat, other = (group.chat_id for group in sim.groups)
    shown = await bot.sent(other, card(), "interactive")
    codes = [(await bot.send(chat, TEXT))[0] for _ in range(6)]
    assert codes == [0] * 5 + [230020]
    assert (await bot.send(other, TEXT))[0] == 0
    patch = {"content": json.dumps(card())}
    codes = [(await bot.ask("PATCH", f"/im/v1/messages/{shown}", patch))[0] for _ in range(6)]
    assert codes == [0] * 5 + [230020]
    sim.lark.clock.advance(1)
    assert (await bot.send(chat, TEXT))[0] == 0


async def test_fifty_parallel_calls_a_second_are_accepted(bot: Bot, sim: LarkSim) -> None:
    await bot.ask("GET", "/bot/v3/info")
    sim.lark.clock.hold()
    sim.lark.clock.advance(1)
    async with asyncio.TaskGroup() as tasks:
        asks = [tasks.create_task(bot.ask("GET", "/bot/v3/info")) for _ in range(54)]
    codes = [ask.result()[0] for ask in asks]
    assert (codes.count(0), codes.count(99991400)) == (50, 4)
    assert (await bot.ask("GET", "/im/v1/chats"))[0] == 0  # each API counts for itself
    response = await bot.call(bot.client.request, _info(bot.sdk))
    assert (response.code, response.raw.status_code) == (99991400, 429)
    headers = {name.lower(): value for name, value in response.raw.headers.items()}
    assert headers["x-ogw-ratelimit-reset"] == "1"
    sim.lark.clock.advance(1)
    assert (await bot.ask("GET", "/bot/v3/info"))[0] == 0


def _info(sdk: Sdk) -> Any:
    request = sdk.lark.BaseRequest()
    request.http_method = sdk.lark.HttpMethod.GET
    request.uri = "/open-apis/bot/v3/info"
    request.token_types = {sdk.lark.AccessTokenType.TENANT}
    return request


async def test_at_most_a_thousand_calls_a_minute_are_accepted(bot: Bot, sim: LarkSim) -> None:
    sim.lark.clock.hold()
    for _ in range(25):
        for _ in range(40):
            sim.lark.state.limits.call(bot.app.app_id, "GET /open-apis/bot/v3/info")
        sim.lark.clock.advance(1)
    assert (await bot.ask("GET", "/bot/v3/info"))[0] == 99991400
    sim.lark.clock.advance(35)
    assert (await bot.ask("GET", "/bot/v3/info"))[0] == 0


async def test_tokens_are_checked_expire_and_can_be_revoked(
    bot: Bot, sdk: Sdk, sim: LarkSim
) -> None:
    assert (await bot.ask("GET", "/bot/v3/info"))[0] == 0
    sim.lark.clock.advance(7200)
    assert (await bot.ask("GET", "/bot/v3/info"))[0] == 99991663
    bot.forget_token()
    assert (await bot.ask("GET", "/bot/v3/info"))[0] == 0
    sim.lark.tokens.revoke()
    assert (await bot.ask("GET", "/bot/v3/info"))[0] == 99991663
    request = _info(sdk)
    request.token_types = set()
    response = await bot.call(bot.client.request, request)
    assert response.code in {99991661, 99991663}


async def test_a_wrong_secret_gets_no_token(sdk: Sdk, sim: LarkSim) -> None:
    wrong = Bot(sdk, sim, App(sim.app.app_id, "wrong"))
    with pytest.raises(sdk.lark.core.exception.ObtainAccessTokenException, match="10014"):
        await wrong.ask("GET", "/bot/v3/info")


async def test_uploads_are_checked(bot: Bot, sim: LarkSim, chat: str) -> None:
    state = sim.lark.state
    large = b"\x89PNG\r\n\x1a\n" + bytes(10 * 1024 * 1024)
    kind: user_actions.MediaKind
    for kind, data, code in (
        ("image", b"", 234010),
        ("image", b"<svg>", 234011),
        ("image", large, 234006),
        ("file", b"", 234010),
    ):
        with pytest.raises(LarkError) as refused:
            user_actions.upload_draft(state, "name", data, kind)
        assert refused.value.code == code
    with pytest.raises(LarkError, match="larger"):
        store_file(state, "name", bytes(30 * 1024 * 1024 + 1), app_id=sim.app.app_id)
    draft = user_actions.upload_draft(state, "huge", bytes(100 * 1024 * 1024 + 1), "file")
    huge = await sim.send(sim.people[0], chat, draft)
    path = f"/im/v1/messages/{huge}/resources/{draft.content['file_key']}"
    assert (await bot.ask("GET", path, None, type="file"))[0] == 234037
    theirs = user_actions.upload_draft(state, "n", b"x", "file").content["file_key"]
    asked = await sim.send_text(sim.people[0], chat, "hi")
    path = f"/im/v1/messages/{asked}/resources/{theirs}"
    assert (await bot.ask("GET", path, None, type="file"))[0] == 234003
    assert (await bot.ask("GET", path, None, type="movie"))[0] == 99992402
    assert (await bot.ask("GET", f"/im/v1/files/{theirs}"))[0] == 234008
    assert (await bot.ask("GET", "/im/v1/images/none"))[0] == 234001
    shown = await bot.sent(chat, card(), "interactive")
    path = f"/im/v1/messages/{shown}/resources/{theirs}"
    assert (await bot.ask("GET", path, None, type="file"))[0] == 234043


async def test_reactions_are_checked(bot: Bot, sim: LarkSim, chat: str) -> None:
    asked = await sim.send_text(sim.people[0], chat, "hi")
    path = f"/im/v1/messages/{asked}/reactions"
    user_actions.react(sim.lark.state, sim.people[0].open_id, asked, "OK")
    (theirs,) = sim.messages(chat)[0].reactions
    assert (await bot.ask("POST", path, {"reaction_type": {"emoji_type": "no such"}}))[0] == 231001
    assert (await bot.ask("DELETE", f"{path}/{theirs.reaction_id}"))[0] == 231007
    assert (await bot.ask("DELETE", f"{path}/nothing"))[0] == 231010
    body = {"reaction_type": {"emoji_type": "Typing"}}
    _, one = await bot.ask("POST", path, body)
    _, two = await bot.ask("POST", path, body)
    assert one["data"]["reaction_id"] == two["data"]["reaction_id"]


@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [
        ("GET", "/im/v1/messages?container_id_type=chat&container_id=x&page_size=51", None),
        ("GET", "/im/v1/messages?container_id_type=folder", None),
        ("GET", "/im/v1/messages?container_id_type=chat&container_id=x", None),
        ("POST", "/im/v1/messages?receive_id_type=chat_id", {"receive_id": 1}),
        ("POST", "/im/v1/messages?receive_id_type=chat_id", []),
        ("GET", "/contact/v3/users/ou_nobody", None),
        ("GET", "/im/v1/chats/oc_nothing", None),
        ("POST", "/interactive/v1/card/update", {"token": "c-none", "card": {}}),
    ],
)
async def test_malformed_requests_get_an_error_code_and_no_crash(
    bot: Bot, verb: str, path: str, body: Any
) -> None:
    code, answer = await bot.ask(verb, path, body)
    assert code > 0
    assert answer["http"] == 400

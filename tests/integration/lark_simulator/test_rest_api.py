"""Successful REST calls through the SDK."""

import asyncio
import io
import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from internal.simulators.lark import user_actions
from internal.simulators.lark.simulator import LarkSim
from tests.integration.lark_simulator.cards import card, markdown
from tests.support.http_client import HttpClient
from tests.support.lark_sdk import Bot, Sdk

PNG = b"\x89PNG\r\n\x1a\n" + bytes(32) + b"\r\n--not-a-boundary\r\n"


async def test_a_message_is_sent_read_edited_and_recalled(bot: Bot, sdk: Sdk, sim: LarkSim) -> None:
    im, api = sdk.im, bot.client.im.v1.message
    person = sim.people[0]
    body = im.CreateMessageRequestBody.builder().receive_id(person.open_id).msg_type("text")
    body = body.content('{"text":"hi"}').uuid("u-1").build()
    request = im.CreateMessageRequest.builder().receive_id_type("open_id").request_body(body)
    sent = await bot.done(api.create, request.build())
    assert sent.chat_id == sim.dm(person).chat_id
    assert (sent.sender.id, sent.sender.sender_type) == (bot.app.app_id, "app")

    edit = im.UpdateMessageRequestBody.builder().msg_type("text").content('{"text":"ho"}').build()
    request = im.UpdateMessageRequest.builder().message_id(sent.message_id).request_body(edit)
    await bot.done(api.update, request.build())
    got = await bot.done(
        api.get, im.GetMessageRequest.builder().message_id(sent.message_id).build()
    )
    assert [one.body.content for one in got.items] == ['{"text":"ho"}']
    assert got.items[0].updated is True

    await bot.done(
        api.delete, im.DeleteMessageRequest.builder().message_id(sent.message_id).build()
    )
    assert sim.messages(sim.dm(person))[0].deleted is True


async def test_a_reply_has_its_parent_root_and_thread(bot: Bot, sdk: Sdk, sim: LarkSim) -> None:
    im, group, person = sdk.im, sim.groups[0], sim.people[0]
    root = await sim.send_text(person, group, "root")
    answer = await sim.send_text(sim.people[1], group, "answer", reply_to=root)

    async def reply(to: str, *, in_thread: bool) -> Any:
        body = im.ReplyMessageRequestBody.builder().msg_type("text").content('{"text":"x"}')
        body = body.reply_in_thread(in_thread).build()
        request = im.ReplyMessageRequest.builder().message_id(to).request_body(body).build()
        return await bot.done(bot.client.im.v1.message.reply, request)

    plain = await reply(answer, in_thread=False)
    assert (plain.parent_id, plain.root_id, plain.thread_id) == (answer, root, None)
    thread = await reply(root, in_thread=True)
    assert (thread.parent_id, thread.root_id) == (root, root)
    again = await reply(thread.message_id, in_thread=False)
    assert (again.thread_id, again.parent_id) == (thread.thread_id, root)

    sim.lark.state.apps[sim.app.app_id] = replace(sim.app, hears_all=True)

    async def listed(kind: str, container: str) -> list[str]:
        request = im.ListMessageRequest.builder().container_id_type(kind).container_id(container)
        data = await bot.done(bot.client.im.v1.message.list, request.page_size(50).build())
        return [one.message_id for one in data.items]

    assert await listed("thread", thread.thread_id) == [
        root,
        thread.message_id,
        again.message_id,
    ]
    assert await listed("chat", group.chat_id) == [root, answer, plain.message_id]


async def test_every_message_in_a_topic_group_starts_a_thread(bot: Bot, sim: LarkSim) -> None:
    group = sim.lark.state.add_group(
        "Topics", [sim.people[0].open_id], [bot.app.app_id], topic=True
    )
    asked = await sim.send_text(sim.people[0], group, "asked")
    answer = await bot.sent(group.chat_id, {"text": "told"})
    first, second = (sim.lark.state.messages[one] for one in (asked, answer))
    assert first.thread_id
    assert second.thread_id not in {"", first.thread_id}


async def test_messages_are_listed_in_pages(bot: Bot, sdk: Sdk, sim: LarkSim) -> None:
    dm = sim.dm(sim.people[0])
    sent = [await sim.send_text(sim.people[0], dm, f"{number}") for number in range(7)]
    found: list[str] = []
    token = ""
    while True:
        request = sdk.im.ListMessageRequest.builder().container_id_type("chat")
        request = request.container_id(dm.chat_id).sort_type("ByCreateTimeDesc").page_size(3)
        data = await bot.done(bot.client.im.v1.message.list, request.page_token(token).build())
        found += [one.message_id for one in data.items]
        token = data.page_token
        if not data.has_more:
            break
    assert found == sent[::-1]


async def test_a_list_is_limited_to_its_time_range(bot: Bot, sim: LarkSim) -> None:
    person, dm = sim.people[0], sim.dm(sim.people[0])
    await sim.send_text(person, dm, "old", age_seconds=7200)
    await sim.send_text(person, dm, "new")
    query = {"container_id_type": "chat", "container_id": dm.chat_id}
    start = str(int(sim.lark.clock.now()) - 3600)
    _, answer = await bot.ask("GET", "/im/v1/messages", None, start_time=start, **query)
    assert [one["body"]["content"] for one in answer["data"]["items"]] == ['{"text":"new"}']


async def test_a_merged_message_includes_its_children(bot: Bot, sim: LarkSim) -> None:
    person, dm, group = sim.people[0], sim.dm(sim.people[0]), sim.groups[0]
    children = [await sim.send_text(person, group, words) for words in ("one", "two")]
    found = [sim.lark.state.messages[one] for one in children]
    merged = await sim.send(
        person, dm, user_actions.MessageDraft("merge_forward", {}, children=found)
    )
    _, answer = await bot.ask("GET", f"/im/v1/messages/{merged}")
    assert [one.get("upper_message_id") for one in answer["data"]["items"]] == [
        None,
        merged,
        merged,
    ]


async def test_a_merged_message_includes_what_is_merged_inside_of_it(
    bot: Bot, sim: LarkSim
) -> None:
    person, dm = sim.people[0], sim.dm(sim.people[0])
    said = await sim.send_text(person, dm, "one")
    inner = await sim.send(person, dm, user_actions.merge_draft(sim.lark.state, [said]))
    merged = await sim.send(person, dm, user_actions.merge_draft(sim.lark.state, [inner, said]))
    _, answer = await bot.ask("GET", f"/im/v1/messages/{merged}")
    items = answer["data"]["items"]
    places = [(one["message_id"], one.get("upper_message_id")) for one in items]
    assert places == [(merged, None), (inner, merged), (said, inner), (said, merged)]
    assert items[0]["body"]["content"] == '{"content":"Merged and Forwarded Message"}'


async def test_names_are_read_in_one_call(bot: Bot, sim: LarkSim) -> None:
    ids = [one.open_id for one in sim.people[:2]]
    path = f"/contact/v3/users/batch?user_ids={ids[0]}&user_ids={ids[1]}&user_ids=ou_unknown"
    _, answer = await bot.ask("GET", path)
    assert [one["name"] for one in answer["data"]["items"]] == ["Mei Lin", "Jonas Berg"]
    code, _ = await bot.ask("GET", "/contact/v3/users/batch")
    assert code == 99992402


async def test_a_message_is_forwarded(bot: Bot, sdk: Sdk, sim: LarkSim) -> None:
    im, group = sdk.im, sim.groups[0]
    asked = await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "pass it on")
    body = im.ForwardMessageRequestBody.builder().receive_id(group.chat_id).build()
    request = im.ForwardMessageRequest.builder().message_id(asked).receive_id_type("chat_id")
    request = request.uuid("f-1").request_body(body).build()
    await bot.done(bot.client.im.v1.message.forward, request)
    await bot.done(bot.client.im.v1.message.forward, request)
    assert [one.content for one in sim.messages(group)] == ['{"text":"pass it on"}']


async def test_a_card_is_patched(bot: Bot, sdk: Sdk, sim: LarkSim) -> None:
    im = sdk.im
    sent = await bot.sent(sim.groups[0].chat_id, card(markdown("one")), "interactive")
    body = im.PatchMessageRequestBody.builder().content(json.dumps(card(markdown("two")))).build()
    request = im.PatchMessageRequest.builder().message_id(sent).request_body(body).build()
    await bot.done(bot.client.im.v1.message.patch, request)
    assert sim.card(sent) == card(markdown("two"))


async def test_reactions_are_added_listed_and_removed(bot: Bot, sdk: Sdk, sim: LarkSim) -> None:
    im, api = sdk.im, bot.client.im.v1.message_reaction
    asked = await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "hi")
    user_actions.react(sim.lark.state, sim.people[0].open_id, asked, "HEART")
    emoji = im.Emoji.builder().emoji_type("Typing").build()
    body = im.CreateMessageReactionRequestBody.builder().reaction_type(emoji).build()
    request = im.CreateMessageReactionRequest.builder().message_id(asked).request_body(body)
    made = await bot.done(api.create, request.build())
    assert made.operator.operator_type == "app"
    request = im.ListMessageReactionRequest.builder().message_id(asked).reaction_type("Typing")
    listed = await bot.done(api.list, request.build())
    assert [one.reaction_id for one in listed.items] == [made.reaction_id]
    request = im.DeleteMessageReactionRequest.builder().message_id(asked)
    await bot.done(api.delete, request.reaction_id(made.reaction_id).build())
    assert [one.emoji for one in sim.lark.state.messages[asked].reactions] == ["HEART"]


async def test_an_image_is_uploaded_and_downloaded(bot: Bot, sdk: Sdk, sim: LarkSim) -> None:
    im = sdk.im
    body = im.CreateImageRequestBody.builder().image_type("message")
    body = body.image(("a.png", io.BytesIO(PNG), "image/png")).build()
    request = im.CreateImageRequest.builder().request_body(body).build()
    made = await bot.done(bot.client.im.v1.image.create, request)
    await bot.sent(sim.groups[0].chat_id, {"image_key": made.image_key}, "image")
    request = im.GetImageRequest.builder().image_key(made.image_key).build()
    got = await bot.call(bot.client.im.v1.image.get, request)
    assert (got.code, got.file.read()) == (0, PNG)


@pytest.mark.slow
async def test_a_file_is_uploaded_and_downloaded(bot: Bot, sdk: Sdk, sim: LarkSim) -> None:
    im = sdk.im
    body = im.CreateFileRequestBody.builder().file_type("stream").file_name("报告.md")
    body = body.file(("x.md", io.BytesIO(PNG), "text/markdown")).build()
    request = im.CreateFileRequest.builder().request_body(body).build()
    made = await bot.done(bot.client.im.v1.file.create, request)
    await bot.sent(sim.groups[0].chat_id, {"file_key": made.file_key}, "file")
    request = im.GetFileRequest.builder().file_key(made.file_key).build()
    got = await bot.call(bot.client.im.v1.file.get, request)
    assert (got.file_name, got.file.read()) == ("报告.md", PNG)


@pytest.mark.parametrize("image", [True, False])
async def test_resources_of_a_message_are_downloaded(
    bot: Bot, sdk: Sdk, sim: LarkSim, image: bool
) -> None:
    person = sim.people[0]
    draft = user_actions.upload_draft(sim.lark.state, "a.png", PNG, "image" if image else "file")
    asked = await sim.send(person, sim.dm(person), draft)
    kind = "image" if image else "file"
    request = sdk.im.GetMessageResourceRequest.builder().message_id(asked).type(kind)
    request = request.file_key(draft.content[f"{kind}_key"]).build()
    got = await bot.call(bot.client.im.v1.message_resource.get, request)
    assert (got.code, got.file.read()) == (0, PNG)


async def test_chats_and_their_members_are_listed(bot: Bot, sdk: Sdk, sim: LarkSim) -> None:
    im, group = sdk.im, sim.groups[0]
    listed = await bot.done(bot.client.im.v1.chat.list, im.ListChatRequest.builder().build())
    assert {one.name for one in listed.items} == {"Product", "Operations"}
    request = im.GetChatRequest.builder().chat_id(group.chat_id).build()
    got = await bot.done(bot.client.im.v1.chat.get, request)
    assert (got.name, got.chat_mode, got.user_count) == ("Product", "group", "4")
    request = im.GetChatMembersRequest.builder().chat_id(group.chat_id).build()
    members = await bot.done(bot.client.im.v1.chat_members.get, request)
    assert members.member_total == 4
    assert {one.name for one in members.items} == {one.name for one in sim.people}


async def test_the_bot_and_people_are_described(bot: Bot, sdk: Sdk, sim: LarkSim) -> None:
    _, answer = await bot.ask("GET", "/bot/v3/info")
    assert answer["bot"]["open_id"] == bot.app.open_id
    assert "data" not in answer
    person, contact = sim.people[0], sdk.contact
    request = contact.GetUserRequest.builder().user_id_type("open_id").user_id(person.open_id)
    got = await bot.done(bot.client.contact.v3.user.get, request.build())
    assert got.user.name == person.name


async def test_mentions_become_keys_and_a_list(bot: Bot, sim: LarkSim) -> None:
    person = sim.people[0]
    text = f'hi <at user_id="{person.open_id}">x</at> <at user_id="all"></at> <at id="no">?</at>'
    sent = await bot.sent(sim.groups[0].chat_id, {"text": text})
    _, answer = await bot.ask("GET", f"/im/v1/messages/{sent}")
    (item,) = answer["data"]["items"]
    assert json.loads(item["body"]["content"])["text"] == 'hi @_user_1 @_all <at id="no">?</at>'
    assert [(one["key"], one["id"], one["name"]) for one in item["mentions"]] == [
        ("@_user_1", person.open_id, person.name)
    ]


async def test_a_token_is_checked_before_the_body_is_read(sim: LarkSim) -> None:
    address = urlsplit(sim.url)
    client = HttpClient(address.hostname or "", address.port or 0, "wrong")
    announced = {"content-length": str(40 << 20), "content-type": "application/json"}
    for headers in (announced, {**announced, "authorization": None}):
        head = client.head("POST", "/open-apis/im/v1/images", headers)
        async with asyncio.timeout(10):
            reply = await client.exchange(head)
        assert reply.json()["code"] != 0
    secrets = client.head("POST", "/open-apis/auth/v3/tenant_access_token/internal", announced)
    async with asyncio.timeout(10):
        assert (await client.exchange(secrets + bytes(100_000))).status == 413

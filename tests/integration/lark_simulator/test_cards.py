"""Card validation, CardKit operations and clicks."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.simulators.lark import user_actions
from internal.simulators.lark.cards.card_json import check_card, read_card
from internal.simulators.lark.errors import CardError
from internal.simulators.lark.simulator import LarkSim
from tests.integration.lark_simulator.cards import button, card, markdown
from tests.support.lark_sdk import Bot, Sdk

TABLE = "| a | b |\n|---|---|\n| 1 | 2 |"
OLD = {"config": {"update_multi": True}, "elements": [{"tag": "div", "text": {"tag": "lark_md"}}]}


SUBMIT = {"tag": "button", "name": "send", "form_action_type": "submit"}


def form(name: str, *elements: dict[str, Any]) -> dict[str, Any]:
    return {"tag": "form", "name": name, "elements": list(elements)}


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ([], 200621),
        ("x", 200621),
        ({}, 200621),
        ({"schema": "2.0", "elements": []}, 200621),
        ({"schema": "2.0", "body": {"elements": []}, "elements": []}, 200621),
        (card({"tag": "action", "actions": []}), 200621),
        (card({"tag": "note", "elements": []}), 200621),
        (card({"tag": "marquee"}), 200621),
        (card({"tag": 7}), 200621),
        (card(*[markdown("x")] * 201), 300305),
        (card(*[markdown(TABLE)] * 4), 11310),
        (card(*[{"tag": "table", "columns": [], "rows": []}] * 4), 11310),
        (card(markdown("a", "one"), markdown("b", "one")), 300301),
        (card(markdown("a", "1one")), 300302),
        (card(markdown("a", "a" * 21)), 300302),
        (card(markdown("a", "häh")), 300302),
        (card(form("f")), 200621),
        (card(form("f", SUBMIT, SUBMIT)), 200621),
        (card(form("f", SUBMIT), form("f", {**SUBMIT, "name": "other"})), 200621),
        (card(form("f", SUBMIT, {"tag": "input"})), 200621),
        (card({"tag": "collapsible_panel", "elements": [form("f", SUBMIT)]}), 200621),
    ],
)
async def test_an_invalid_card_is_rejected_by_every_call(
    bot: Bot, sim: LarkSim, wrong: Any, code: int
) -> None:
    with pytest.raises(CardError) as refused:
        check_card(wrong)
    assert refused.value.code == code
    said, answer = await bot.send(sim.groups[0].chat_id, wrong, "interactive")
    if isinstance(wrong, dict):
        assert said == 230099
        assert f"ErrCode: {code};" in answer["msg"]
    else:
        assert said == 230001
    body = {"type": "card_json", "data": json.dumps(wrong)}
    assert (await bot.ask("POST", "/cardkit/v1/cards", body))[0] == code


@pytest.mark.parametrize(
    "right",
    [
        card(),
        OLD,
        {"i18n_elements": {"zh_cn": []}},
        card(*[markdown(TABLE)] * 3, markdown(f"```\n{TABLE}\n```")),
        card(*[markdown("x")] * 200),
        card(button("ok", {"tag": "not a tag", "deep": {"tag": 5}})),
        card(form("f", SUBMIT), form("g", {**SUBMIT, "name": "other"})),
        {**OLD, "elements": [{"tag": "action", "actions": [{"tag": "button"}]}, {"tag": "note"}]},
    ],
)
def test_a_valid_card_is_accepted(right: Any) -> None:
    assert read_card(json.dumps(right)) == right


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tag", "elements", "body", "schema", "element_id", "content", "x"]),
            inner | st.sampled_from(["2.0", "markdown", "div"]),
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(value=JSON)
def test_any_json_is_a_card_or_rejected(value: Any) -> None:
    try:
        check_card(value)
    except CardError:
        return
    assert isinstance(value, dict)


@pytest.fixture
async def made(bot: Bot, sdk: Sdk, sim: LarkSim) -> str:
    """A streaming card of CardKit, sent to a group."""
    kit = sdk.cardkit
    shown = card(markdown("", "answer"), markdown("end", "last"), streaming_mode=True)
    body = kit.CreateCardRequestBody.builder().type("card_json").data(json.dumps(shown)).build()
    request = kit.CreateCardRequest.builder().request_body(body).build()
    data = await bot.done(bot.client.cardkit.v1.card.create, request)
    reference = {"type": "card", "data": {"card_id": data.card_id}}
    await bot.sent(sim.groups[0].chat_id, reference, "interactive")
    return str(data.card_id)


def shown(sim: LarkSim) -> list[Any]:
    """The elements of the last card in the group, as (id, content)."""
    now = sim.card(sim.messages(sim.groups[0])[-1].message_id) or {}
    return [(one.get("element_id"), one["content"]) for one in now["body"]["elements"]]


async def test_a_card_streams_until_its_stream_is_closed(
    bot: Bot, sdk: Sdk, sim: LarkSim, made: str
) -> None:
    kit, api = sdk.cardkit, bot.client.cardkit.v1
    for sequence, text in enumerate(("He", "Hello"), 1):
        body = kit.ContentCardElementRequestBody.builder().content(text).sequence(sequence)
        request = kit.ContentCardElementRequest.builder().card_id(made).element_id("answer")
        await bot.done(api.card_element.content, request.request_body(body.build()).build())
    assert shown(sim) == [("answer", "Hello"), ("last", "end")]
    settings = json.dumps({"config": {"streaming_mode": False}})
    close = kit.SettingsCardRequestBody.builder().settings(settings).sequence(3).build()
    request = kit.SettingsCardRequest.builder().card_id(made).request_body(close).build()
    await bot.done(api.card.settings, request)
    path = f"/cardkit/v1/cards/{made}/elements/answer/content"
    assert (await bot.ask("PUT", path, {"content": "x", "sequence": 4}))[0] == 300309
    data = (
        kit.Card.builder().type("card_json").data(json.dumps(card(markdown("done", "a")))).build()
    )
    full = kit.UpdateCardRequestBody.builder().card(data).sequence(4).build()
    request = kit.UpdateCardRequest.builder().card_id(made).request_body(full).build()
    await bot.done(api.card.update, request)
    assert shown(sim) == [("a", "done")]


async def test_elements_are_added_changed_and_removed(
    bot: Bot, sdk: Sdk, sim: LarkSim, made: str
) -> None:
    kit, api = sdk.cardkit, bot.client.cardkit.v1.card_element
    more = json.dumps([markdown("new", "new")])
    add = kit.CreateCardElementRequestBody.builder().type("insert_before")
    add = add.target_element_id("last").elements(more).sequence(1).build()
    request = kit.CreateCardElementRequest.builder().card_id(made).request_body(add).build()
    await bot.done(api.create, request)
    assert [name for name, _ in shown(sim)] == ["answer", "new", "last"]

    part = kit.PatchCardElementRequestBody.builder().partial_element('{"content":"patched"}')
    request = kit.PatchCardElementRequest.builder().card_id(made).element_id("new")
    await bot.done(api.patch, request.request_body(part.sequence(2).build()).build())
    whole = kit.UpdateCardElementRequestBody.builder().element(json.dumps(markdown("whole", "w")))
    request = kit.UpdateCardElementRequest.builder().card_id(made).element_id("last")
    await bot.done(api.update, request.request_body(whole.sequence(3).build()).build())
    gone = kit.DeleteCardElementRequestBody.builder().sequence(4).build()
    request = kit.DeleteCardElementRequest.builder().card_id(made).element_id("answer")
    await bot.done(api.delete, request.request_body(gone).build())
    assert shown(sim) == [("new", "patched"), ("w", "whole")]

    actions = [
        {"action": "add_elements", "params": {"type": "append", "elements": [markdown("z", "z")]}},
        {"action": "delete_elements", "params": {"element_ids": ["new"]}},
        {
            "action": "partial_update_element",
            "params": {"element_id": "w", "partial_element": {"content": "batch"}},
        },
        {
            "action": "partial_update_setting",
            "params": {"settings": {"config": {"streaming_mode": False}}},
        },
        {"action": "update_element", "params": {"element_id": "z", "element": markdown("Z", "z")}},
    ]
    batch = kit.BatchUpdateCardRequestBody.builder().actions(json.dumps(actions)).sequence(5)
    request = kit.BatchUpdateCardRequest.builder().card_id(made).request_body(batch.build())
    await bot.done(bot.client.cardkit.v1.card.batch_update, request.build())
    assert shown(sim) == [("w", "batch"), ("z", "Z")]


async def test_a_batch_is_applied_completely_or_not_at_all(
    bot: Bot, sim: LarkSim, made: str
) -> None:
    before = shown(sim)
    actions = [
        {"action": "delete_elements", "params": {"element_ids": ["last"]}},
        {"action": "delete_elements", "params": {"element_ids": ["nothing"]}},
    ]
    body = {"actions": json.dumps(actions), "sequence": 1}
    assert (await bot.ask("POST", f"/cardkit/v1/cards/{made}/batch_update", body))[0] == 300313
    assert shown(sim) == before
    body["actions"] = json.dumps(actions[:1])
    assert (await bot.ask("POST", f"/cardkit/v1/cards/{made}/batch_update", body))[0] == 0


async def test_sequences_must_rise_over_all_operations(bot: Bot, sim: LarkSim, made: str) -> None:
    sim.set_faults(limits=False)
    content = f"/cardkit/v1/cards/{made}/elements/answer/content"
    settings = f"/cardkit/v1/cards/{made}/settings"
    assert (await bot.ask("PUT", content, {"content": "a", "sequence": 5}))[0] == 0
    assert (await bot.ask("PUT", content, {"content": "b", "sequence": 5}))[0] == 300317
    assert (await bot.ask("PATCH", settings, {"settings": "{}", "sequence": 4}))[0] == 300317
    for wrong in (None, 0, -1, "6", True, 1.5):
        code, _ = await bot.ask("PUT", content, {"content": "c", "sequence": wrong})
        assert code == 99992402
    missing = content.replace("answer", "nothing")
    assert (await bot.ask("PUT", missing, {"content": "c", "sequence": 6}))[0] == 300313
    assert (await bot.ask("PUT", content, {"content": "d", "sequence": 6}))[0] == 0
    assert shown(sim)[0] == ("answer", "d")


async def test_parallel_writers_never_lower_the_sequence(bot: Bot, sim: LarkSim, made: str) -> None:
    sim.set_faults(limits=False)
    path = f"/cardkit/v1/cards/{made}/elements/answer/content"

    async def write(number: int) -> tuple[int, int]:
        code, _ = await bot.ask("PUT", path, {"content": f"{number}", "sequence": number})
        return number, code

    async with asyncio.TaskGroup() as tasks:
        writes = [tasks.create_task(write(number)) for number in range(1, 25)]
    codes = dict(one.result() for one in writes)
    assert set(codes.values()) <= {0, 300317}
    assert shown(sim)[0] == ("answer", str(max(at for at, code in codes.items() if code == 0)))
    assert codes[24] == 0


async def test_a_stream_ends_after_ten_minutes_and_can_be_reopened(
    bot: Bot, sim: LarkSim, made: str
) -> None:
    content = f"/cardkit/v1/cards/{made}/elements/answer/content"
    sim.lark.clock.advance(599)
    assert (await bot.ask("PUT", content, {"content": "a", "sequence": 1}))[0] == 0
    sim.lark.clock.advance(2)
    assert (await bot.ask("PUT", content, {"content": "b", "sequence": 2}))[0] == 300309
    again = {"settings": json.dumps({"config": {"streaming_mode": True}}), "sequence": 2}
    assert (await bot.ask("PATCH", f"/cardkit/v1/cards/{made}/settings", again))[0] == 0
    assert (await bot.ask("PUT", content, {"content": "b", "sequence": 3}))[0] == 0


async def test_a_card_accepts_ten_operations_a_second(bot: Bot, sim: LarkSim, made: str) -> None:
    sim.lark.clock.hold()
    path = f"/cardkit/v1/cards/{made}/elements/answer/content"
    codes = [
        (await bot.ask("PUT", path, {"content": "a", "sequence": at}))[0] for at in range(1, 12)
    ]
    assert codes == [0] * 10 + [99991400]


async def test_invalid_cardkit_calls_are_rejected(bot: Bot, sim: LarkSim, made: str) -> None:
    root = f"/cardkit/v1/cards/{made}"
    sim.set_faults(limits=False)
    for verb, path, body, code in (
        ("POST", "/cardkit/v1/cards", {"type": "template", "data": "{}"}, 99992402),
        ("POST", "/cardkit/v1/cards", {"type": "card_json", "data": json.dumps(OLD)}, 99992402),
        ("PUT", "/cardkit/v1/cards/1", {"card": {"type": "card_json", "data": "{}"}}, 200621),
        ("PATCH", "/cardkit/v1/cards/1/settings", {"settings": "{}", "sequence": 1}, 300303),
        ("PATCH", f"{root}/settings", {"settings": "[]", "sequence": 1}, 99992402),
        ("PATCH", f"{root}/settings", {"settings": "{", "sequence": 1}, 99992402),
        ("POST", f"{root}/elements", {"type": "before", "elements": "[]"}, 99992402),
        ("POST", f"{root}/elements", {"type": "append", "elements": '["x"]'}, 99992402),
        (
            "POST",
            f"{root}/elements",
            {"type": "append", "elements": json.dumps([markdown("x", "last")]), "sequence": 1},
            300301,
        ),
        ("PATCH", f"{root}/elements/last", {"partial_element": '{"tag":"hr"}'}, 99992402),
        ("POST", f"{root}/batch_update", {"actions": '[{"action":"x"}]'}, 99992402),
        (
            "PUT",
            f"{root}/elements/last/content",
            {"content": "x" * 31_000, "sequence": 1},
            230025,
        ),
    ):
        assert (await bot.ask(verb, path, body))[0] == code, (path, body)
    assert shown(sim) == [("answer", ""), ("last", "end")]


async def test_a_sent_card_is_converted_to_cardkit(bot: Bot, sim: LarkSim) -> None:
    chat = sim.groups[0].chat_id
    sent = await bot.sent(chat, card(markdown("a", "a")), "interactive")
    _, answer = await bot.ask("POST", "/cardkit/v1/cards/id_convert", {"message_id": sent})
    path = f"/cardkit/v1/cards/{answer['data']['card_id']}/elements/a"
    body = {"partial_element": '{"content":"b"}', "sequence": 1}
    assert (await bot.ask("PATCH", path, body))[0] == 0
    assert shown(sim) == [("a", "b")]
    said = await bot.sent(chat, {"text": "x"})
    assert (await bot.ask("POST", "/cardkit/v1/cards/id_convert", {"message_id": said}))[
        0
    ] == 230001


async def test_a_click_reaches_the_bot_and_its_response_updates_the_card(
    bot: Bot, sim: LarkSim
) -> None:
    person = sim.people[0]
    sent = await bot.sent(sim.groups[0].chat_id, card(button("yes", {"k": 1})), "interactive")
    fresh = card(markdown("answered"))
    toast = {"type": "success", "content": "好"}
    bot.answer = lambda _: {"toast": toast, "card": {"type": "raw", "data": fresh}}
    async with bot.listening():
        outcome = await sim.click(person, sent, "Yes")
    assert outcome == {"toast": toast}
    assert sim.card(sent) == fresh
    (event,) = bot.heard
    assert event["header"]["event_type"] == "card.action.trigger"
    told = event["event"]
    assert told["operator"]["open_id"] == person.open_id
    assert told["action"] == {"tag": "button", "name": "yes", "value": {"k": 1}}
    assert told["context"]["open_message_id"] == sent


async def test_a_form_is_submitted_with_its_values(bot: Bot, sim: LarkSim) -> None:
    submit = {**button("send", {"k": 2}), "form_action_type": "submit"}
    form = {"tag": "form", "name": "f", "elements": [{"tag": "input", "name": "why"}, submit]}
    sent = await bot.sent(sim.groups[0].chat_id, card(form), "interactive")
    async with bot.listening():
        await sim.click(sim.people[0], sent, "send", form_value={"why": "因为"})
    assert bot.heard[0]["event"]["action"]["form_value"] == {"why": "因为"}


def fail(_: Any) -> None:
    raise RuntimeError("no")


@pytest.mark.parametrize(
    ("answer", "toast", "error"),
    [
        (lambda _: None, None, None),
        (lambda _: {}, None, None),
        (lambda _: [], "error", "JSON object"),
        (fail, "error", None),
        (lambda _: {"card": {"type": "raw", "data": {"schema": "2.0"}}}, None, "missing"),
        (lambda _: {"card": {"type": "raw"}}, None, "missing"),
        (lambda _: {"card": {"type": "template", "data": {}}}, None, "raw"),
    ],
)
async def test_an_invalid_response_to_a_click_changes_nothing(
    bot: Bot, sim: LarkSim, answer: Any, toast: str | None, error: str | None
) -> None:
    before = card(button("yes", {"k": 1}))
    sent = await bot.sent(sim.groups[0].chat_id, before, "interactive")
    bot.answer = answer
    async with bot.listening():
        outcome = await sim.click(sim.people[0], sent, "yes")
    assert (outcome["toast"] or {}).get("type") == toast
    assert (error or "") in outcome.get("error", "")
    assert sim.card(sent) == before
    assert len([push for push in sim.pushes if push.event_type == "card.action.trigger"]) == 1


async def test_a_click_without_a_response_shows_an_error(bot: Bot, sim: LarkSim) -> None:
    sent = await bot.sent(sim.groups[0].chat_id, card(button("yes", {"k": 1})), "interactive")
    outcome = await sim.click(sim.people[0], sent, "yes")
    assert outcome["toast"]["type"] == "error"


@pytest.mark.slow
async def test_only_visible_enabled_elements_can_be_clicked(bot: Bot, sim: LarkSim) -> None:
    off = {**button("off", {}), "disabled": True}
    elements = (button("yes", {}), off, button("two", {}), button("two", {}))
    dm = sim.dm(sim.people[0])
    sent = await bot.sent(dm.chat_id, card(*elements), "interactive")
    for person, name in (
        (sim.people[1], "yes"),
        (sim.people[0], "off"),
        (sim.people[0], "two"),
        (sim.people[0], "none"),
    ):
        with pytest.raises(user_actions.ActionError):
            await sim.click(person, sent, name)
    said = await sim.send_text(sim.people[0], dm, "no card")
    with pytest.raises(user_actions.ActionError):
        await sim.click(sim.people[0], said, "yes")
    sim.lark.clock.advance(31 * 86_400)
    outcome = await sim.click(sim.people[0], sent, "yes")
    assert "expired" in outcome["toast"]["content"]


async def test_a_streaming_card_is_not_updated_by_a_response(
    bot: Bot, sim: LarkSim, made: str
) -> None:
    sent = sim.messages(sim.groups[0])[-1].message_id
    shown = card(button("yes", {}), streaming_mode=True)
    body = {"card": {"type": "card_json", "data": json.dumps(shown)}, "sequence": 1}
    assert (await bot.ask("PUT", f"/cardkit/v1/cards/{made}", body))[0] == 0
    bot.answer = lambda _: {"card": {"type": "raw", "data": card()}}
    async with bot.listening():
        outcome = await sim.click(sim.people[0], sent, "yes")
    assert "streaming" in outcome["error"]
    assert sim.card(sent) == shown


async def test_a_callback_token_updates_twice_within_thirty_minutes(bot: Bot, sim: LarkSim) -> None:
    sent = await bot.sent(sim.groups[0].chat_id, card(button("yes", {})), "interactive")
    path = "/interactive/v1/card/update"

    async def update(token: str) -> int:
        return (await bot.ask("POST", path, {"token": token, "card": card(button("yes", {}))}))[0]

    async with bot.listening():
        await sim.click(sim.people[0], sent, "yes")
        await sim.click(sim.people[0], sent, "yes")
    first, second = (one["event"]["token"] for one in bot.heard)
    assert [await update(first) for _ in range(3)] == [0, 0, 300090]
    sim.lark.clock.advance(1801)
    assert await update(second) == 300090

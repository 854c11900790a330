"""The buttons below the reply of a run that ended before its answer."""

from pathlib import Path

from internal.simulators.lark.cards.card_json import check_card
from internal.simulators.lark.model import Json
from tests.support.anthropic_server import Fault, Reply
from tests.support.lark_gateway import LarkGateway, open_lark_gateway

REFUSED = Fault("status", status=401, error="authentication_error", message="no")
TOO_LONG = Fault("status", status=400, error="invalid_request_error",
                 message="prompt is too long: 300000 tokens > 200000 maximum")  # fmt: skip


def labels(lark: LarkGateway, number: int = 0) -> list[str]:
    card = lark.sim.card(lark.from_bot()[number].message_id) or {}
    check_card(card)
    rows = [each for each in card["body"]["elements"] if each["tag"] == "column_set"]
    buttons = [column["elements"][0] for row in rows for column in row["columns"]]
    return [button["text"]["content"] for button in buttons]


def toast(response: Json) -> str:
    return str(response["toast"]["content"])


async def test_try_again_answers_in_reply_to_the_card_once(tmp_path: Path) -> None:
    script = [Reply(fault=REFUSED), Reply("forty-two")]
    async with open_lark_gateway(tmp_path, script) as lark:
        await lark.say("what is it?")
        await lark.until_replies(1)
        await lark.settled()
        assert labels(lark) == ["Try again"]
        card = lark.from_bot()[0].message_id
        assert toast(await lark.sim.click(lark.person, card, "Try again")).startswith(
            "It continues"
        )
        assert (await lark.until_replies(2))[1] == "forty-two"
        await lark.settled()
        assert lark.from_bot()[1].parent_id == card
        assert labels(lark, 1) == []
        again = await lark.sim.click(lark.person, card, "Try again")
        assert toast(again) == "This was continued before."
        await lark.settled()
        assert len(lark.from_bot()) == 2


async def test_a_conversation_that_is_too_long_offers_a_new_one(tmp_path: Path) -> None:
    script = [Reply("hello"), Reply(fault=TOO_LONG, times=1), Reply("fresh")]
    async with open_lark_gateway(tmp_path, script) as lark:
        await lark.say("你好")
        await lark.until_replies(1)
        await lark.say("再来一次")
        await lark.until_replies(2)
        await lark.settled()
        assert labels(lark, 1) == ["新会话"]
        card = lark.from_bot()[1].message_id
        assert toast(await lark.sim.click(lark.person, card, "新会话")).startswith("已开始新会话")
        assert toast(await lark.sim.click(lark.person, card, "新会话")) == "已经有更新的会话了。"
        await lark.say("第三句")
        await lark.until_replies(3)
        assert "你好" not in str(lark.core.model.requests[-1]["messages"])


async def test_others_of_a_group_cannot_use_the_button(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply(fault=REFUSED), Reply("late")]) as lark:
        await lark.sim.send_text(lark.person, lark.group, "now?", mention_bot=True)
        await lark.until_replies(1, lark.group)
        await lark.settled()
        card = lark.from_bot(lark.group)[0].message_id
        refused = await lark.sim.click(lark.sim.people[1], card, "Try again")
        assert toast(refused).startswith("Only the person who started this task")
        await lark.settled()
        assert len(lark.from_bot(lark.group)) == 1

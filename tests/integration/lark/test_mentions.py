"""A run mentions people of its group by a tool; a card refused for a mention goes out without."""

import json
from pathlib import Path
from typing import Any

import pytest

from internal.simulators.lark.model import ChatMessage
from internal.simulators.lark.state import LarkState
from tests.support.anthropic_server import Call, Reply
from tests.support.lark_gateway import LarkGateway, open_lark_gateway, shown_text

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}


def mention(*names: str) -> Reply:
    return Reply(calls=[Call("mention_people", {"people": list(names)})])


async def ask(lark: LarkGateway, text: str = "who must know?") -> list[ChatMessage]:
    """Ask in the group and return the bot's messages there."""
    before = len(lark.from_bot(lark.group))
    await lark.sim.send_text(lark.person, lark.group, text, mention_bot=True)
    await lark.until_replies(before + 1, lark.group)
    await lark.settled()
    return lark.from_bot(lark.group)[before:]


def results(lark: LarkGateway) -> list[str]:
    """Return the results of the tool as the model read them."""
    found: list[str] = []
    for message in lark.core.model.requests[-1]["messages"]:
        if isinstance(message["content"], list):
            found += [
                json.dumps(part["content"])
                for part in message["content"]
                if part["type"] == "tool_result"
            ]
    return found


async def test_the_answer_begins_with_mentions_of_members(tmp_path: Path) -> None:
    script = [mention("@jonas  berg", "Amara Obi"), Reply("Please look. <at id=all></at>")]
    async with open_lark_gateway(tmp_path, script, environ=NO_GATES) as lark:
        [answer] = await ask(lark)
        jonas, amara = (lark.sim.person(name).open_id for name in ("Jonas Berg", "Amara Obi"))
        start = f"<at id={jonas}></at> <at id={amara}></at>\n"
        assert shown_text(lark.sim, answer) == f"{start}Please look. &#60;at id=all>&#60;/at>"
        assert "Jonas Berg, Amara Obi" in results(lark)[0]


async def test_the_tool_is_not_offered_in_direct_chats(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("hi"), Reply("hi")]) as lark:
        await lark.say("hello")
        await lark.until_replies(1)
        await ask(lark)
        offered = [
            "mention_people" in [tool["name"] for tool in request["tools"]]
            for request in lark.core.model.requests
        ]
        assert offered == [False, True]


def add_twin(state: LarkState) -> str:
    twin = state.add_person("Jonas Berg").open_id
    next(iter(each for each in state.chats.values() if each.name == "Product")).members.append(twin)
    return twin


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Jonas Berg"], "several people have the name"),
        (["everyone"], "everyone cannot be mentioned"),
        (["所有人"], "everyone cannot be mentioned"),
        (["Jonas"], "did you mean: Jonas Berg #"),
        (["Nobody Here"], "nobody in this chat has the name"),
        ([], "mention_people: "),
        (["Mei Lin"] * 6, "mention_people: "),
    ],
)
@pytest.mark.first_rows(2)
async def test_a_name_that_is_not_that_of_one_member_mentions_nobody(
    tmp_path: Path, names: list[str], expected: str
) -> None:
    script = [mention(*names), Reply("Done.")]
    async with open_lark_gateway(tmp_path, script, environ=NO_GATES) as lark:
        twin = add_twin(lark.sim.lark.state)
        [answer] = await ask(lark)
        assert shown_text(lark.sim, answer) == "Done."
        assert expected in results(lark)[0]
        if "several" in expected:
            assert f"Jonas Berg #{twin[-6:]}" in results(lark)[0]


async def test_a_label_tells_people_of_one_name_apart_and_five_are_the_most(
    tmp_path: Path,
) -> None:
    twin = ""

    def script(request: dict[str, Any]) -> Reply:
        results = sum("tool_result" in json.dumps(each) for each in request["messages"])
        if results == 0:
            return mention(f"Jonas Berg #{twin[-6:]}", "Mei Lin", "Amara Obi")
        return mention("Kenji Mori", "P1", "P2") if results == 1 else Reply("Done.")

    async with open_lark_gateway(tmp_path, script, environ=NO_GATES) as lark:
        state = lark.sim.lark.state
        twin = add_twin(state)
        lark.group.members.extend(state.add_person(name).open_id for name in ("P1", "P2"))
        [answer] = await ask(lark)
        text = shown_text(lark.sim, answer) or ""
        assert text.count("<at ") == 3
        assert f"<at id={twin}></at>" in text
        assert "at most 5 people, and this one mentions 3" in results(lark)[1]


async def test_a_card_refused_for_a_mention_goes_out_as_a_card_without_mentions(
    tmp_path: Path,
) -> None:
    script = [mention("Jonas Berg"), Reply("| a | b |\n|---|---|\n| 1 | 2 |")] * 2
    async with open_lark_gateway(tmp_path, script, environ=NO_GATES) as lark:
        jonas = lark.sim.person("Jonas Berg").open_id
        lark.sim.lark.state.left.add(jonas)  # still a member, as in a group of long ago
        for number in (1, 2):
            [answer] = await ask(lark, f"question {number}")
            assert answer.msg_type == "interactive"
            assert shown_text(lark.sim, answer) == "| a | b |\n|---|---|\n| 1 | 2 |"
        sent = [each for each in lark.sim.log if "/reply" in str(each.public())]
        refused = [each for each in sent if "100290" in str(each.public())]
        assert len(refused) == 1  # it is remembered

"""Long answers are up to four cards, or a beginning and a file; code is shown exactly."""

import json
from pathlib import Path

import pytest

from internal.channels.lark.message_format import MAX_RICH_BYTES
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import ChatMessage
from tests.support.lark_gateway import LarkGateway, open_lark_gateway
from tests.support.lark_markdown import as_shown, codes, shown_tags
from tests.support.scripted_model import Reply

ANSWER = "\n\n".join(f"Paragraph {n}. " + "some words " * 40 + "end." for n in range(150))
CODE = "\n".join(f"print({n})  # {'x' * 40}" for n in range(1_200))


def cards(lark: LarkGateway) -> list[str]:
    return [card_text(lark, one) for one in lark.from_bot()]


def card_text(lark: LarkGateway, message: ChatMessage) -> str:
    card = lark.sim.card(message.message_id) or {}
    return "\n".join(each["content"] for each in card["body"]["elements"])


async def test_a_long_answer_is_several_cards_in_order(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply(ANSWER)]) as lark:
        asked = await lark.say("tell me everything")
        await lark.until_replies(3)
        await lark.settled()
        sent = lark.from_bot()
        assert {one.msg_type for one in sent} == {"interactive"}
        assert {one.parent_id for one in sent} == {asked}
        assert all(len(one.content.encode()) <= MAX_RICH_BYTES for one in sent)
        assert "\n\n".join(text.strip() for text in cards(lark)) == ANSWER
        shown = [lark.sim.card(one.message_id) or {} for one in sent]
        summaries = [card["config"]["summary"]["content"] for card in shown]
        assert summaries[0].startswith("Paragraph 0. some words")
        assert all(summary.startswith("Paragraph ") for summary in summaries)


async def test_all_cards_of_an_answer_are_in_the_thread(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("first"), Reply(ANSWER)]) as lark:
        root = await lark.sim.send_text(lark.person, lark.group, "hello", mention_bot=True)
        await lark.until_replies(1, lark.group)
        asked = await lark.sim.send_text(
            lark.person, lark.group, "more", mention_bot=True, reply_to=root, in_thread=True
        )
        await lark.until_replies(4, lark.group)
        await lark.settled()
        thread = lark.sim.lark.state.messages[asked].thread_id
        sent = lark.from_bot(lark.group)[1:]
        assert thread
        assert {one.thread_id for one in sent} == {thread}
        assert "\n\n".join(card_text(lark, one).strip() for one in sent) == ANSWER


@pytest.mark.parametrize("times", [1, 2, pytest.param(7, marks=pytest.mark.slow)])
@pytest.mark.first_rows(1)
async def test_a_lost_response_to_the_second_card_neither_doubles_nor_drops_one(
    tmp_path: Path, times: int
) -> None:
    async with open_lark_gateway(tmp_path, [Reply(ANSWER)]) as lark:
        passes = AnswerFault("slow", "/reply", times=1, seconds=0.0)
        lost = AnswerFault("lost", "/reply", times=times)
        lark.sim.faults.answers += [passes, lost]
        await lark.say("tell me everything")
        await lark.until_replies(3)
        await lark.settled()
        assert not lost.times
        assert "\n\n".join(text.strip() for text in cards(lark)) == ANSWER


@pytest.mark.parametrize(("times", "kind"), [(1, "post"), (2, "text")])
async def test_only_the_rejected_card_is_sent_in_another_form(
    tmp_path: Path, times: int, kind: str
) -> None:
    async with open_lark_gateway(tmp_path, [Reply(f"```py\n{CODE}\n```")]) as lark:
        passes = AnswerFault("slow", "/reply", times=1, seconds=0.0)
        rejected = AnswerFault("code", "/reply", times=times, code=230099)
        lark.sim.faults.answers += [passes, rejected]
        await lark.say("show the code")
        await lark.until_replies(3)
        await lark.settled()
        assert [one.msg_type for one in lark.from_bot()] == ["interactive", kind, "interactive"]
        found = [line for reply in lark.replies() for line in reply.split("\n")]
        assert [line for line in found if not line.startswith("```")] == CODE.split("\n")


async def test_a_very_long_answer_is_a_beginning_and_a_file(tmp_path: Path) -> None:
    answer = f"# Résumé 结果\r\n\n`a\\b` <at id=all></at> {ANSWER}\n\n{ANSWER}"
    async with open_lark_gateway(tmp_path, [Reply(answer)]) as lark:
        await lark.say("tell me everything")
        await lark.until_replies(2)
        await lark.settled()
        assert [one.msg_type for one in lark.from_bot()] == ["interactive", "file"]
        assert "full answer is in the attached file" in cards_text(lark)
        key = json.loads(lark.from_bot()[1].content)["file_key"]
        assert lark.sim.lark.state.media[key].data == answer.encode()


def cards_text(lark: LarkGateway) -> str:
    return card_text(lark, lark.from_bot()[0])


AWKWARD = (
    "Use `x<y>` & `<at id=all></at>`, ``a`b``, `C:\\new\\table`, `f[0](1)`, `[a](http://e.x)`.",
    "Then <at id=all></at> <b>not bold</b> <!-- x --> and 5 < 6 > 4 with \\*stars\\* and a_b_c.",
    "结果是“好”。参见 `路径\\文件`。👩‍👩‍👧 e\u0301",
    "```html\n<at id=all></at>\n  <b>x</b> \\n `y` [a](http://e.x)\n\n\ttab\n```",
    "- list\n  ```sh\n  echo '<b>' | sed 's/\\\\/x/g'\n  ```",
)
INLINE = [
    *("x<y>", "<at id=all></at>", "a`b", "C:\\new\\table", "f[0](1)", "[a](http://e.x)"),
    "路径\\文件",
]
BLOCKS = [
    "<at id=all></at>\n  <b>x</b> \\n `y` [a](http://e.x)\n\n\ttab",
    "echo '<b>' | sed 's/\\\\/x/g'",
]
OUTSIDE = [
    *("<at id=all></at> <b>not bold</b> <!-- x --> and 5 < 6 > 4 with *stars* and a_b_c.",),
    "👩‍👩‍👧 e\u0301",
]


def visible(text: str) -> str:
    return text.replace("\u200b", "")


async def test_a_reader_sees_exactly_what_was_written_in_every_form(tmp_path: Path) -> None:
    answer = "\n\n".join(AWKWARD)
    async with open_lark_gateway(tmp_path, [Reply(answer)] * 3) as lark:
        faults = lark.sim.faults.answers
        for number in range(3):
            faults.append(AnswerFault("code", "/reply", times=number, code=230099))
            await lark.say("show me")
            await lark.until_replies(number + 1)
        card, post, text = lark.from_bot()
        markdown = card_text(lark, card)
        assert codes(markdown) == [*INLINE, *(f"{block}\n" for block in BLOCKS)]
        assert shown_tags(markdown) == []
        assert all(part in as_shown(markdown) for part in OUTSIDE)
        parts = [part for row in json.loads(post.content)["content"] for part in row]
        rich = "\n".join(part["text"] for part in parts if part["tag"] == "md")
        assert codes(rich) == INLINE
        assert shown_tags(rich) == []
        assert all(part in visible(as_shown(rich)) for part in OUTSIDE)
        assert [part["text"] for part in parts if part["tag"] == "code_block"] == BLOCKS
        plain = json.loads(text.content)["text"]
        assert not text.mentions
        shown = visible(plain)
        assert all(part in shown for part in [*INLINE, *BLOCKS, *OUTSIDE])
        assert shown.count("\\") == sum(part.count("\\") for part in [*INLINE, *BLOCKS])

"""Pictures and files that people send: fetched from Lark, and read by the model."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.simulator import LarkSim
from internal.simulators.lark.user_actions import (
    MessageDraft,
    upload_draft,
)
from tests.support import documents
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Reply
from tests.support.chat_settings import with_values
from tests.support.lark_chats import ALONE, EAR, open_questions, post, send_file
from tests.support.lark_gateway import QUIET, LarkGateway, open_lark_gateway
from tests.support.lark_runs import user_texts

RESOURCES = "/resources/"
MIB = 1024 * 1024
PDF = documents.pdf("Revenue 120")


def blocks(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the blocks of the messages of people in a request."""
    for message in request["messages"]:
        if message["role"] == "user" and isinstance(message["content"], list):
            yield from message["content"]


def pictures(request: dict[str, Any]) -> list[bytes]:
    sources = (each["source"] for each in blocks(request) if each["type"] == "image")
    return [base64.b64decode(source["data"]) for source in sources]


def downloads(lark: LarkGateway) -> int:
    return sum(RESOURCES in each.what for each in lark.sim.log if each.kind == "call")


async def test_a_picture_is_seen(tmp_path: Path) -> None:
    png = documents.picture("PNG")
    async with open_lark_gateway(tmp_path, [Reply("a square")]) as lark:
        await send_file(lark, "", png, "image")
        assert await lark.until_replies(1) == ["a square"]
        request = lark.core.model.requests[-1]
    assert pictures(request) == [png]
    assert 'path="input/picture.png"' in str(request["messages"])


@pytest.mark.parametrize(
    ("name", "content", "seen"),
    [
        ("report.pdf", PDF, "Revenue 120"),
        ("报告.docx", documents.docx(documents.word_paragraph("Umsatz 130")), "Umsatz 130"),
        ("sales.xlsx", documents.xlsx({"Sales": [("March", 140)]}), "140"),
        ("slides.pptx", documents.pptx(documents.slide_text("Goal 150")), "Goal 150"),
        ("data.csv", b"month,value\nMarch,160\n", "160"),
        ("all.zip", documents.archive({"inside.txt": "170"}), "inside.txt"),
        ("empty.txt", b"\n", "empty.txt"),
        ("../../.bashrc", b"alias 180", "alias 180"),
    ],
)
@pytest.mark.first_rows(2)
async def test_a_file_is_read(tmp_path: Path, name: str, content: bytes, seen: str) -> None:
    async with open_lark_gateway(tmp_path, [Reply("read")]) as lark:
        await send_file(lark, name, content)
        assert await lark.until_replies(1) == ["read"]
        [text] = user_texts(lark.core.model.requests[-1])
        tasks = await lark.core.services.gateway.queries.tasks(LOCAL_OWNER, limit=2)
    assert seen in text
    assert text.count("<attachment name=") == 1
    [task] = tasks
    [attachment] = task.attachments
    assert (attachment.is_stored, attachment.size) == (True, len(content))


async def test_a_voice_message_and_a_video_are_kept_as_files(tmp_path: Path) -> None:
    settings = with_values(QUIET, busy_mode="queue")
    async with open_lark_gateway(tmp_path, [Reply("one"), Reply("two")], settings) as lark:
        await send_file(lark, "", b"OggS" + bytes(60), "audio")
        await send_file(lark, "clip.mp4", b"\0\0\0\x18ftypmp42" + bytes(60), "media")
        await lark.until_replies(2)
        voice, video = (user_texts(each)[-1] for each in lark.core.model.requests)
    assert 'path="input/voice-message.ogg" media_type="audio/ogg"' in voice
    assert 'path="input/clip.mp4" media_type="video/mp4"' in video


async def test_the_pictures_of_a_post_are_seen_where_they_stand(tmp_path: Path) -> None:
    red, blue = documents.picture("PNG", size=(8, 8)), documents.picture("PNG", size=(9, 9))
    async with open_lark_gateway(tmp_path, [Reply("yes")]) as lark:
        state = lark.sim.lark.state
        keys = [upload_draft(state, "", each, "image").content["image_key"] for each in (red, blue)]
        first, second = ({"tag": "img", "image_key": key} for key in keys)
        words = {"tag": "text", "text": "is this smaller than "}
        await lark.sim.send(lark.person, lark.dm, post([first, words, second]))
        await lark.until_replies(1)
        request = lark.core.model.requests[-1]
    assert pictures(request) == [red, blue]
    assert "[picture-1]is this smaller than [picture-2]" in str(request["messages"])


async def test_the_file_of_a_quoted_message_is_read(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("120")], ALONE) as lark:
        jonas = lark.sim.people[1]
        draft = upload_draft(lark.sim.lark.state, "report.pdf", PDF, "file")
        quoted = await lark.sim.send(jonas, lark.group, draft)
        await lark.sim.send_text(
            lark.person, lark.group, "what is the revenue?", mention_bot=True, reply_to=quoted
        )
        assert await lark.until_replies(1, lark.group) == ["120"]
        [text] = user_texts(lark.core.model.requests[-1])
    assert "[report.pdf]\n</quoted_message>" in text
    assert "Revenue 120" in text


async def test_recent_messages_name_files_without_showing_them(tmp_path: Path) -> None:
    async with (
        LarkSim([EAR], speed=100.0) as sim,
        open_lark_gateway(tmp_path, [Reply("ok")], sim=sim) as lark,
    ):
        draft = upload_draft(sim.lark.state, "report.pdf", PDF, "file")
        await sim.send(sim.people[1], lark.group, draft)
        await sim.send_text(lark.person, lark.group, "hello", mention_bot=True)
        await lark.until_replies(1, lark.group)
        [text] = user_texts(lark.core.model.requests[-1])
        assert downloads(lark) == 0
    assert "Jonas Berg: [report.pdf] (its files are not shown to you" in text


async def test_a_file_sent_during_a_run_reaches_it(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("wait")], hold="go"), Reply("Revenue is 120.")]
    async with open_lark_gateway(tmp_path, script) as lark:
        await lark.say("what is the revenue?")
        await lark.core.model.until_open(1)
        sent = await send_file(lark, "report.pdf", PDF)
        await lark.sim.until(lambda _: lark.sim.lark.state.messages[sent].reactions)
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["Revenue is 120."]
        assert "Revenue 120" in user_texts(lark.core.model.requests[-1])[-1]


async def test_a_picture_sent_as_an_answer_is_seen(tmp_path: Path) -> None:
    png = documents.picture("PNG")
    ask = Call("request_user", {"question": "Which logo?", "options": ["old", "new"]})
    async with open_lark_gateway(tmp_path, [Reply(calls=[ask]), Reply("That one.")]) as lark:
        await lark.say("describe the logo")
        await open_questions(lark, 1)
        key = upload_draft(lark.sim.lark.state, "", png, "image").content["image_key"]
        row = [{"tag": "text", "text": "this one"}, {"tag": "img", "image_key": key}]
        await lark.sim.send(lark.person, lark.dm, post(row))
        assert (await lark.until_replies(1))[-1] == "That one."
        assert pictures(lark.core.model.requests[-1]) == [png]


@pytest.mark.parametrize(
    "kind",
    [
        "rate_limit",
        pytest.param("bad_gateway", marks=pytest.mark.slow),
        pytest.param("lost", marks=pytest.mark.slow),
        pytest.param("cut", marks=pytest.mark.slow),
        "late",
    ],
)
@pytest.mark.first_rows(1)
async def test_a_failed_download_is_repeated(tmp_path: Path, kind: str) -> None:
    async with open_lark_gateway(tmp_path, [Reply("120")]) as lark:
        lark.sim.set_faults(answers=[AnswerFault(kind, RESOURCES, seconds=0.1, times=2)])
        await send_file(lark, "report.pdf", PDF)
        assert await lark.until_replies(1) == ["120"]
        [text] = user_texts(lark.core.model.requests[-1])
        assert "Revenue 120" in text
        assert downloads(lark) == (1 if kind == "late" else 3)


async def test_a_rejected_token_is_replaced(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("hi"), Reply("120")]) as lark:
        await lark.say("hello")
        await lark.until_replies(1)
        await lark.settled()
        lark.sim.lark.tokens.revoke()
        await send_file(lark, "report.pdf", PDF)
        await lark.until_replies(2)
        assert "Revenue 120" in user_texts(lark.core.model.requests[-1])[-1]


async def test_a_chinese_chat_reads_in_chinese_why_a_file_was_not_read(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("看不到内容。"), Reply("看不到。")]) as lark:
        secret = await send_file(lark, "工资.pdf", documents.encrypted_pdf())
        await lark.until_replies(1)
        await lark.say("请阅读附件", reply_to=secret)
        reply = (await lark.until_replies(2))[-1].replace("\\", "")
    assert "工资.pdf\uff1aPDF 已加密" in reply
    assert "password" not in reply


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (AnswerFault("code", RESOURCES, times=9, code=234003), "no longer contains it"),
        (AnswerFault("code", RESOURCES, times=9, code=234037), "larger than 100 MB"),
        (AnswerFault("code", RESOURCES, times=9, code=99991672), "im:message:readonly"),
        (AnswerFault("code", RESOURCES, times=9, code=230099), "refuses it"),
        (AnswerFault("cut", RESOURCES, times=9), "does not send it now"),
        pytest.param(
            AnswerFault("no_data", RESOURCES, times=9),
            "does not send it now",
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.first_rows(2)
async def test_a_file_that_cannot_be_fetched_is_named_to_the_model_and_to_the_person(
    tmp_path: Path, fault: AnswerFault, reason: str
) -> None:
    async with open_lark_gateway(tmp_path, [Reply("I have not seen it.")]) as lark:
        lark.sim.set_faults(answers=[fault])
        await send_file(lark, "report.pdf", PDF)
        [reply] = await lark.until_replies(1)
        [text] = user_texts(lark.core.model.requests[-1])
    assert reply.startswith("I have not seen it.\n\n---\nI couldn't read these files")
    assert "report.pdf" in reply
    assert "[the file is not available: " in text
    assert reason in text
    assert reason.split(":", maxsplit=1)[0] in reply.replace("\\", "")


async def test_an_encrypted_file_is_named_to_the_person(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("I cannot.")]) as lark:
        await send_file(lark, "secret.pdf", documents.encrypted_pdf())
        [reply] = await lark.until_replies(1)
    assert "secret.pdf" in reply
    assert "password" in reply


async def test_a_forged_address_is_not_requested(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("no")]) as lark:
        draft = MessageDraft("image", {"image_key": "../../../contact/v3/users/x?type=image#"})
        await lark.sim.send(lark.person, lark.dm, draft)
        await lark.until_replies(1)
        paths = [each.what for each in lark.sim.log if each.kind == "call"]
    assert not any("contact/v3/users/x" in path and RESOURCES not in path for path in paths)


async def test_the_same_file_sent_twice_is_one_in_the_folder(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("one"), Reply("two"), Reply("three")]) as lark:
        for count, content in enumerate((PDF, PDF, documents.pdf("Revenue 130")), 1):
            await send_file(lark, "report.pdf", content)
            await lark.until_replies(count)
            await lark.settled()
        [folder] = (tmp_path / "workspaces").glob("*/input")
        assert sorted(each.name for each in folder.iterdir()) == ["report-2.pdf", "report.pdf"]


async def test_a_file_without_words_in_a_group_is_left_alone(tmp_path: Path) -> None:
    async with LarkSim([EAR], speed=100.0) as sim, open_lark_gateway(tmp_path, [], sim=sim) as lark:
        draft = upload_draft(sim.lark.state, "report.pdf", PDF, "file")
        await sim.send(lark.person, lark.group, draft)
        await lark.settled()
        assert downloads(lark) == 0
        assert not lark.from_bot(lark.group)

"""Pictures and files that the bot sends, over real calls."""

import asyncio
import hashlib
import io
import json
import logging
import zipfile
from collections.abc import Awaitable, Iterator
from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.chats import OutgoingMessage
from internal.agent.domain.ids import SessionId
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Attachment
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import ChatMessage, Media
from tests.support.anthropic_server import Reply
from tests.support.lark_gateway import APP, LarkGateway, open_lark_gateway
from tests.support.s3_server import s3_server

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(200))
MIB = 1024 * 1024


async def _send(
    lark: LarkGateway,
    reply_to: str,
    *files: tuple[str, str, bytes],
    run_id: str = "",
    before_sending: Awaitable[None] | None = None,
) -> None:
    """Put a message with files into the outbox, as the end of a run does."""
    app = lark.core.services
    stored: list[Attachment] = []
    for name, media_type, content in files:
        stored.append(await app.files.put(SessionId("session-1"), name, media_type, content))
    if before_sending is not None:
        await before_sending
    body = "\n".join(f"{name} ({len(content)} bytes)" for name, _, content in files)
    row = OutgoingMessage(
        "run:file:1",
        "lark",
        APP.app_id,
        lark.dm.chat_id,
        reply_to,
        body,
        attachments=tuple(stored),
        run_id=run_id,
    )
    await app.database.write(partial(app.stores.outbox.add, row, "2026-01-01"))
    app.gateway.delivery.wake_loops()


async def _sent_after_answer(lark: LarkGateway) -> ChatMessage:
    await lark.sim.until(lambda _: len(lark.from_bot()) == 2)
    await lark.settled()
    answer, file = lark.from_bot()
    assert (answer.msg_type, file.parent_id) == ("interactive", answer.parent_id)
    return file


def _media(lark: LarkGateway, message: ChatMessage) -> Media:
    keys = json.loads(message.content)
    return lark.sim.lark.state.media[keys.get("image_key") or keys["file_key"]]


@pytest.mark.parametrize(
    ("file", "msg_type"),
    [
        (("chart.png", "image/png", PNG), "image"),
        (("report.pdf", "application/pdf", b"%PDF-1.7"), "file"),
        (("broken.png", "image/png", b"no picture"), "file"),
        (("large.png", "image/png", PNG + bytes(10 * MIB)), "file"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
async def test_a_file_follows_the_answer(
    tmp_path: Path, file: tuple[str, str, bytes], msg_type: str
) -> None:
    async with open_lark_gateway(tmp_path, [Reply("Here it is.")]) as lark:
        asked = await lark.say("send it")
        await lark.until_replies(1)
        await _send(lark, asked, file)
        message = await _sent_after_answer(lark)
        assert message.msg_type == msg_type
        assert _media(lark, message).data == file[2]


@pytest.mark.parametrize("content", [b"", bytes(30 * MIB + 1)], ids=["empty", "too large"])
async def test_a_file_that_lark_does_not_take_is_named(tmp_path: Path, content: bytes) -> None:
    async with open_lark_gateway(tmp_path, [Reply("Here it is.")]) as lark:
        asked = await lark.say("send it")
        await lark.until_replies(1)
        await _send(lark, asked, ("data.bin", "application/octet-stream", content))
        message = await _sent_after_answer(lark)
        words = json.loads(message.content)["text"]
        assert words.startswith(f"data.bin ({len(content)} bytes)\nIt can't be sent here.")


@pytest.mark.parametrize(
    ("name", "content"), [("large.bin", bytes(30 * MIB + 1)), ("refused.pdf", b"%PDF-1.7")]
)
async def test_a_file_that_is_not_sent_has_a_link_to_the_page(
    tmp_path: Path, name: str, content: bytes
) -> None:
    environ = {"LARKSPUR_SERVER__PUBLIC_URL": "https://larkspur.example"}
    async with open_lark_gateway(tmp_path, [Reply("Here it is.")], environ=environ) as lark:
        asked = await lark.say("send it")
        await lark.until_replies(1)
        await lark.settled()
        [task] = await lark.core.services.gateway.queries.tasks(LOCAL_OWNER, limit=2)
        run = await lark.core.services.database.read(
            partial(lark.core.services.stores.runs.get_by_task, task.id)
        )
        assert run is not None
        lark.sim.set_faults(answers=[AnswerFault("code", "/im/v1/files", times=9, code=234001)])
        await _send(lark, asked, (name, "application/pdf", content), run_id=run.id)
        message = await _sent_after_answer(lark)
        words = json.loads(message.content)["text"]
    assert words.startswith(f"{name} ({len(content)} bytes)\nIt can't be sent here.")
    assert words.endswith(f"https://larkspur.example/sessions/{task.session_id}")


class _Reasons(logging.Handler):
    """Collects why messages were not sent."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = asyncio.Queue[str]()

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == "message postponed":
            self.queue.put_nowait(str(vars(record)["reason"]))


@pytest.fixture
def reasons() -> Iterator[asyncio.Queue[str]]:
    handler, logger = _Reasons(), logging.getLogger("internal.channels.chat.outbox_sender")
    logger.addHandler(handler)
    yield handler.queue
    logger.removeHandler(handler)


@pytest.mark.slow
async def test_a_file_is_sent_when_its_bucket_answers_again(
    tmp_path: Path, reasons: asyncio.Queue[str]
) -> None:
    async with (
        s3_server(tmp_path / "server") as server,
        open_lark_gateway(tmp_path, [Reply("Here it is.")], environ=server.environ) as lark,
    ):
        asked = await lark.say("send it")
        await lark.until_replies(1)
        picture = server.folder / "files/larkspur" / hashlib.sha256(PNG).hexdigest()
        await _send(lark, asked, ("chart.png", "image/png", PNG), before_sending=server.stop())
        assert "cannot be reached" in await reasons.get()
        assert picture.read_bytes() == PNG
        await server.start()
        assert _media(lark, await _sent_after_answer(lark)).data == PNG


async def test_several_files_are_one_archive(tmp_path: Path) -> None:
    files = [(f"part {n}.txt", "text/plain", b"%d" % n) for n in range(12)]
    async with open_lark_gateway(tmp_path, [Reply("Here they are.")]) as lark:
        asked = await lark.say("send them")
        await lark.until_replies(1)
        await _send(lark, asked, *files)
        media = _media(lark, await _sent_after_answer(lark))
    with zipfile.ZipFile(io.BytesIO(media.data)) as archive:
        assert media.name == "files.zip"
        assert {name: archive.read(name) for name in archive.namelist()} == {
            name: content for name, _, content in files
        }


@pytest.mark.parametrize("path", ["/images", "/reply"])
@pytest.mark.parametrize("kind", ["rate_limit", "bad_gateway", "lost", "no_data"])
@pytest.mark.first_rows(2)
async def test_a_picture_is_sent_once_despite_a_failure(
    tmp_path: Path, kind: str, path: str
) -> None:
    async with open_lark_gateway(tmp_path, [Reply("Here it is.")]) as lark:
        asked = await lark.say("send it")
        await lark.until_replies(1)
        times = 2 if kind == "lost" else 1  # it is sent twice over a kept connection
        lark.sim.set_faults(answers=[AnswerFault(kind, path, seconds=0.1, times=times)])
        await _send(lark, asked, ("chart.png", "image/png", PNG))
        message = await _sent_after_answer(lark)
        assert (message.msg_type, _media(lark, message).data) == ("image", PNG)

"""Pictures and files of a run in its answer and after it, over real calls."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from internal.agent.domain.principals import LOCAL_OWNER
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import ChatMessage
from tests.support.anthropic_server import Reply
from tests.support.lark_gateway import LarkGateway, open_lark_gateway, shown_text

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(200))
ANSWER = "Sales grew:\n\n![sales by month](output/sales%20chart.png)\n\nCosts did not."


def write_files(folder: Path, files: Sequence[tuple[str, bytes]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files:
        (folder / name).write_bytes(content)


async def ask_with_files(lark: LarkGateway, *files: tuple[str, bytes]) -> list[ChatMessage]:
    """Have a run find new files in the output folder; return the messages of the bot after it."""
    await lark.say("hello")
    await lark.until_replies(1)
    await lark.settled()
    services = lark.core.services
    [task] = await services.gateway.queries.tasks(LOCAL_OWNER, limit=2)
    folder = services.workspaces.folders.path(task.session_id)
    output = Path(services.workspaces.file_folders(task.session_id, folder).output)
    write_files(output, files)
    await lark.say("show the sales")
    await lark.until_replies(2)
    await lark.settled()
    return lark.from_bot()[1:]


def keys_in(message: ChatMessage) -> list[str]:
    """Return the image keys of a rich text."""
    rows = json.loads(message.content)["content"]
    return [part["image_key"] for row in rows for part in row if part["tag"] == "img"]


async def test_a_picture_is_shown_at_its_place_and_only_there(tmp_path: Path) -> None:
    script = [Reply("hi"), Reply(ANSWER)]
    async with open_lark_gateway(tmp_path, script) as lark:
        [answer] = await ask_with_files(lark, ("sales chart.png", PNG))
        text = shown_text(lark.sim, answer) or ""
        start, _, rest = text.partition("![sales by month](")
        key, _, end = rest.partition(")")
        assert start == "Sales grew:\n\n"
        assert end == "\n\nCosts did not."
        assert lark.sim.lark.state.media[key].data == PNG
        card = lark.sim.card(answer.message_id) or {}
        assert card["config"]["summary"]["content"] == "Sales grew: sales by month Costs did not."


@pytest.mark.parametrize(
    "fault",
    [
        AnswerFault("code", "/images", times=1, code=234011),
        AnswerFault("code", "/reply", times=1, code=230099, content="img_v3"),
        AnswerFault("code", "/images", times=1, code=2200, status=500),
    ],
    ids=["upload rejected", "card rejected", "upload fails"],
)
@pytest.mark.first_rows(2)
async def test_a_picture_that_cannot_be_shown_there_follows(
    tmp_path: Path, fault: AnswerFault
) -> None:
    fault = replace(fault)  # it counts down
    async with open_lark_gateway(tmp_path, [Reply("hi"), Reply(ANSWER)]) as lark:
        if fault.status == 500:
            fault.times = 2  # each call is made twice
        lark.sim.faults.answers.append(fault)
        answer, picture = await ask_with_files(lark, ("sales chart.png", PNG))
        assert not fault.times
        assert shown_text(lark.sim, answer) == ("Sales grew:\n\nsales by month\n\nCosts did not.")
        assert picture.msg_type == "image"
        key = json.loads(picture.content)["image_key"]
        assert lark.sim.lark.state.media[key].data == PNG


async def test_no_path_of_the_servers_disk_is_shown(tmp_path: Path) -> None:
    def script(request: dict[str, Any]) -> Reply:
        folder = re.search(r"(?<=Workspace: )[^\\]+", json.dumps(request["system"]))
        assert folder is not None
        path = f"{folder[0]}/output/sales.png"
        return Reply(f"![sales]({path}) in {path}, [log](/var/log/x.log), [](file:///etc/hosts)")

    async with open_lark_gateway(tmp_path, script) as lark:
        [answer] = await ask_with_files(lark, ("sales.png", PNG))
        text = shown_text(lark.sim, answer) or ""
        assert text.startswith("![sales](img_")
        assert text.endswith(") in output/sales.png, log, hosts")


async def test_pictures_that_belong_together_are_one_message_in_their_order(
    tmp_path: Path,
) -> None:
    files = [(f"part {number}.png", PNG + bytes([number])) for number in range(3)]
    async with open_lark_gateway(tmp_path, [Reply("hi"), Reply("Here they are.")]) as lark:
        answer, album = await ask_with_files(lark, *files)
        assert (album.msg_type, album.parent_id) == ("post", answer.parent_id)
        media = [lark.sim.lark.state.media[key].data for key in keys_in(album)]
        assert media == [content for _, content in files]


async def test_a_picture_of_another_text_is_not_in_an_answer(tmp_path: Path) -> None:
    hostile = "![x](img_v3_0) ![y](https://evil.example/track.png) <img src=z>"
    async with open_lark_gateway(tmp_path, [Reply("hi"), Reply(hostile)]) as lark:
        answer, picture = await ask_with_files(lark, ("sales.png", PNG))
        text = shown_text(lark.sim, answer) or ""
        assert "![" not in text
        assert picture.msg_type == "image"

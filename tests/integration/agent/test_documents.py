"""Documents and pictures as received by a model, down to the wire."""

import asyncio
import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support import documents
from tests.support.agent_app import open_agent
from tests.support.documents import slide_text, word_paragraph
from tests.support.http_site import HttpSite
from tests.support.openai_server import ScriptedOpenAI
from tests.support.sandboxes import sandbox_params
from tests.support.scripted_model import Call, Reply

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}


def script(path: str) -> list[Reply]:
    return [Reply(calls=[Call("read_file", {"path": path})]), Reply(text="I have read it.")]


def tool_result(request: dict[str, Any]) -> dict[str, Any]:
    """Return the tool result of the last message of an Anthropic request."""
    (block,) = request["messages"][-1]["content"]
    assert block["type"] == "tool_result"
    return dict(block)


@pytest.mark.parametrize(
    ("name", "content", "first_line", "text"),
    [
        (
            "report.pdf",
            documents.pdf("Revenue 120", "销售额上升"),
            "[PDF, 2 pages; characters 1 to ",
            "## Page 1\n\nRevenue 120\n\n## Page 2\n\n销售额上升\n",
        ),
        (
            "letter.docx",
            documents.docx(word_paragraph("Dear 张三,") + word_paragraph("hello")),
            "[Word document; characters 1 to ",
            "Dear 张三,\n\nhello\n",
        ),
        (
            "talk.pptx",
            documents.pptx(slide_text("Plan", "第一步"), notes="slowly"),
            "[PowerPoint presentation, 1 slide; characters 1 to ",
            "## Slide 1\n\nPlan\n第一步\n\nNotes: slowly\n",
        ),
        (
            "sales.xlsx",
            documents.xlsx({"Q1": [["城市", "Sum"], ["上海", 12.5]]}),
            "[Excel workbook, 1 sheet; characters 1 to ",
            '## Sheet "Q1"\n\n,A,B\n1,城市,Sum\n2,上海,12.5\n',
        ),
        ("list.csv", "城市,数\n上海,1\n".encode("gb18030"), "城市,数", "上海,1"),
        (
            "page.html",
            b"<title>News</title><script>steal()</script><p>Today",
            "[HTML page; characters 1 to 13 of 13; source=true returns the source]",
            "# News\n\nToday",
        ),
        (
            "book.epub",
            documents.epub("<h1>第一章</h1><p>Once"),
            "[EPUB book, 1 chapter; characters 1 to ",
            "# 第一章\n\nOnce",
        ),
        ("server.log", b"up\n" + bytes(4_096) + b"down\n", "up", "[4,096 NUL bytes]down"),
        (
            "report.xls",
            b"<html><table><tr><td>Sum</td></tr></table>",
            "[HTML page; characters 1 to ",
            "| Sum |",
        ),
        (
            "offer.eml",
            b"From: mia@example.com\nSubject: Offer\nMIME-Version: 1.0\n\nHello",
            "[Mail; characters 1 to ",
            "From: mia@example.com\nSubject: Offer\n\nHello\n",
        ),
        (
            "all.zip",
            documents.archive({"../x.txt": "1234", "资料/": ""}),
            "[ZIP archive, 2 entries; characters 1 to ",
            "../x.txt  4 bytes\n资料/\n",
        ),
    ],
)
@pytest.mark.first_rows(3)
async def test_the_model_receives_the_text_of_a_document(
    home: Path, tmp_path: Path, name: str, content: bytes, first_line: str, text: str
) -> None:
    (tmp_path / name).write_bytes(content)
    async with open_agent(home, script(name), NO_GATES) as here:
        await here.end_of(await here.submit("read it", workspace=str(tmp_path)))
        result = tool_result(here.model.requests[-1])
        shown = json.dumps(result["content"], ensure_ascii=False)
        assert json.dumps(first_line, ensure_ascii=False)[1:-1] in shown
        assert json.dumps(text, ensure_ascii=False)[1:-1] in shown
        assert not result.get("is_error")


@pytest.mark.parametrize("provider", sandbox_params("bubblewrap", "landlock"))
@pytest.mark.first_rows(1)
async def test_documents_and_web_pages_are_read_where_commands_are_isolated(
    home: Path, tmp_path: Path, provider: str
) -> None:
    """Their parsers run in the sandbox, and the interpreter may be installed anywhere."""
    (tmp_path / "report.pdf").write_bytes(documents.pdf("Revenue 120"))
    environ = {
        **NO_GATES,
        "LARKSPUR_SANDBOX__PROVIDER": provider,
        "LARKSPUR_TOOLS__WEB_FETCH__ALLOW_PRIVATE_NETWORKS": "true",
    }
    site = HttpSite()
    site.page("/", "<h1>你好</h1><script>x</script>".encode("gbk"), "text/html; charset=gbk")
    async with await asyncio.start_server(site.serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        replies = [
            Reply(calls=[Call("read_file", {"path": "report.pdf"})]),
            Reply(calls=[Call("web_fetch", {"url": url})]),
            Reply(text="done"),
        ]
        async with open_agent(home, replies, environ) as here:
            await here.end_of(await here.submit("read it", workspace=str(tmp_path)))
            document, page = (str(tool_result(r)["content"]) for r in here.model.requests[-2:])
    assert "Revenue 120" in document
    assert "# 你好" in page


async def test_the_model_reads_on_where_the_text_ended(home: Path, tmp_path: Path) -> None:
    rows = [[number, "row " * 10] for number in range(1_000)]
    (tmp_path / "a.xlsx").write_bytes(documents.xlsx({"S": rows}))
    replies = [
        Reply(calls=[Call("read_file", {"path": "a.xlsx"})]),
        Reply(calls=[Call("read_file", {"path": "a.xlsx", "offset": 29_001})]),
        Reply(text="done"),
    ]
    async with open_agent(home, replies, NO_GATES) as here:
        await here.end_of(await here.submit("read it", workspace=str(tmp_path)))
        first, second = (str(tool_result(r)["content"]) for r in here.model.requests[-2:])
        assert "characters 1 to 29,000 of" in first
        assert "offset=29001 reads on" in first
        assert "characters 29,001 to " in second
        assert "999,row" in second


async def test_the_model_sees_a_picture_natively(home: Path, tmp_path: Path) -> None:
    content = documents.picture("PNG", (20, 10))
    (tmp_path / "chart.png").write_bytes(content)
    async with open_agent(home, script("chart.png"), NO_GATES) as here:
        await here.end_of(await here.submit("look", workspace=str(tmp_path)))
        blocks = tool_result(here.model.requests[-1])["content"]
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        assert texts == ["[Picture chart.png: 20 by 10 pixels]"]
        (image,) = (block["source"] for block in blocks if block["type"] == "image")
        assert image["media_type"] == "image/png"
        assert base64.b64decode(image["data"]) == content


async def test_a_large_picture_is_scaled_before_it_is_sent(home: Path, tmp_path: Path) -> None:
    (tmp_path / "photo.tiff").write_bytes(documents.picture("TIFF", (4_000, 1_000)))
    async with open_agent(home, script("photo.tiff"), NO_GATES) as here:
        await here.end_of(await here.submit("look", workspace=str(tmp_path)))
        blocks = tool_result(here.model.requests[-1])["content"]
        (image,) = (block["source"] for block in blocks if block["type"] == "image")
        with Image.open(io.BytesIO(base64.b64decode(image["data"]))) as opened:
            assert opened.size == (1_568, 392)


async def test_chat_completions_get_the_picture_in_the_next_user_message(
    home: Path, tmp_path: Path
) -> None:
    content = documents.picture("JPEG", (20, 10))
    (tmp_path / "chart.jpg").write_bytes(content)
    async with ScriptedOpenAI(script("chart.jpg")) as server:
        environ = {
            **NO_GATES,
            "LARKSPUR_LLM__PROVIDER": "openai",
            "LARKSPUR_LLM__MODEL": "gpt-x",
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": "key-for-tests",
        }
        async with open_agent(home, [], environ, model=server) as here:
            await here.end_of(await here.submit("look", workspace=str(tmp_path)))
        (tool, user) = next(
            messages[-2:]
            for request in server.requests
            if (messages := request["messages"])[-2]["role"] == "tool"
        )
        assert tool["role"] == "tool"
        assert "[Picture chart.jpg: 20 by 10 pixels]" in tool["content"]
        assert user["role"] == "user"
        assert base64.b64encode(content).decode() in json.dumps(user["content"])


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.pdf", documents.encrypted_pdf(), "The PDF is encrypted"),
        ("a.doc", documents.ole_file("WordDocument"), "save it as .docx"),
        ("a.png", documents.picture("PNG", (500, 500))[:90], "The picture is damaged"),
        ("a.bin", bytes(9), "this is a binary file of 9 bytes, not text"),
    ],
)
@pytest.mark.first_rows(1)
async def test_a_file_that_cannot_be_read_is_a_failed_call_with_a_sentence(
    home: Path, tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    (tmp_path / name).write_bytes(content)
    async with open_agent(home, script(name), NO_GATES) as here:
        events = await here.end_of(await here.submit("read it", workspace=str(tmp_path)))
        result = tool_result(here.model.requests[-1])
        assert result["is_error"]
        assert sentence in json.dumps(result["content"])
        assert events[-1]["payload"]["final_answer"] == "I have read it."

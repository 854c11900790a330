"""Files read in a real child process, and the handling of hostile ones."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from internal.agent.domain.errors import DocumentUnreadable
from internal.agent.ports.documents import DocumentText, WebPage
from internal.agent.ports.fair_slots import PERSON
from internal.documents.reader import ChildDocumentReader
from internal.sandbox.bubblewrap import BubblewrapSandbox
from internal.sandbox.launcher import program as launcher
from internal.sandbox.native import NativeSandbox
from internal.sandbox.workspaces import SessionFolders
from tests.support import documents
from tests.support.documents import slide_text, word_paragraph
from tests.support.open_document_samples import open_document
from tests.support.processes import is_of_libffi
from tests.support.sandboxes import sandbox_params
from tests.support.xlsb_samples import workbook as binary_workbook
from tests.support.xml_spreadsheet_samples import workbook as xml_workbook
from tests.unit.documents.documented_rows import LOG, MAIL, OTHER, PDF, WORD, old_workbook

Open = Callable[[bytes], int]
Make = Callable[..., ChildDocumentReader]
CHAPTER = "<h1>第一章</h1><p>Once</p>"
WORKBOOK = documents.xlsx({"S": [["x"]]})
ENTITY = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    descriptors: list[int] = []

    def write(content: bytes) -> int:
        path = tmp_path / f"{len(descriptors)}"
        path.write_bytes(content)
        descriptors.append(os.open(path, os.O_RDONLY))
        return descriptors[-1]

    yield write
    for descriptor in descriptors:
        os.close(descriptor)


@pytest.fixture
def make_reader(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Return a factory of readers in an isolating sandbox, or in another one named by a test."""
    homes = SessionFolders(tmp_path / "homes")
    native = getattr(request, "param", "bubblewrap") == "native"
    return partial(
        ChildDocumentReader, NativeSandbox(homes) if native else BubblewrapSandbox(homes)
    )


def in_every_sandbox(test: Any) -> Any:
    return pytest.mark.parametrize(
        "make_reader", sandbox_params("bubblewrap", "native"), indirect=True
    )(test)


def descendants(pid: int | str) -> set[int]:
    """Return the processes below a process, including processes that were not reaped.

    The launcher, which stays, and its supervisors are left out.
    """
    found = set()
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in map(int, listing.read_text().split()):
                own = launcher.__file__.encode() in Path(f"/proc/{child}/cmdline").read_bytes()
                found |= descendants(child) | (set() if own else {child})
    return found


def status(pid: int | str) -> str:
    """Return the status of a process, "" when it is gone."""
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_confined(pid: int) -> bool:
    """Return whether a process is the interpreter that has denied itself the system calls."""
    fields = dict(line.split(":\t", 1) for line in status(pid).splitlines() if ":\t" in line)
    parent = fields.get("PPid", "0")
    own, outer = (re.findall(r"Seccomp_filters:\t(\d+)", status(each)) for each in (pid, parent))
    return fields.get("Name", "").startswith("python") and bool(own) and own > outer


def inspect(pid: int) -> tuple[bytes, set[str]]:
    """Return the environment with the command line of a process, and its open descriptors."""
    folder = Path(f"/proc/{pid}")
    shown = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
    return shown, {each.name for each in (folder / "fd").iterdir() if not is_of_libffi(each)}


async def until_left(before: set[int]) -> None:
    """Return when no other process is below this one: the launcher reaps its supervisors itself."""
    async with asyncio.timeout(10):
        while descendants("self") != before:  # noqa: ASYNC110 - the kernel tells only its parent
            await asyncio.sleep(0)


async def confined_child(before: set[int], parent: int | str = "self") -> int:
    """Wait until a child reads its file, and return its process id."""
    while True:
        for pid in descendants(parent) - before:
            if is_confined(pid):
                return pid
        await asyncio.sleep(0)


@pytest.mark.needs("namespaces")
@pytest.mark.parametrize(
    ("name", "content", "kind", "parts", "text"),
    [
        (
            "a.pdf",
            documents.pdf("One", "二页"),
            "pdf",
            2,
            "## Page 1\n\nOne\n\n## Page 2\n\n二页\n\n",
        ),
        ("a.docx", documents.docx(word_paragraph("一")), "docx", 1, "一\n\n[^2]: a note\n"),
        ("a.pptx", documents.pptx(slide_text("一")), "pptx", 1, "## Slide 1\n\n一\n\n"),
        (
            "a.xlsx",
            documents.xlsx({"S": [["一", 2]]}),
            "xlsx",
            1,
            '## Sheet "S"\n\n,A,B\n1,一,2\n\n',
        ),
        ("a.epub", documents.epub(CHAPTER), "epub", 1, "## Chapter 1\n\n# 第一章\n\nOnce\n\n"),
        ("a.html", CHAPTER.encode("gb18030"), "html", 1, "# 第一章\n\nOnce"),
        ("a.zip", documents.archive({"b\u202e": ""}), "zip", 1, None),
        ("a.csv", "名,数\n".encode("gb18030"), "csv", 1, "名,数\n"),
        ("a.txt", "你好".encode("utf-16"), "text", 1, "你好"),
        ("a.svg", b"<svg><script>x</script></svg>", "text", 1, "<svg><script>x</script></svg>"),
        ("a.html", b"<script>alert(1)</script><p onclick='x'>Hi", "html", 1, "Hi"),
        ("../a\u202e.txt", documents.pdf("One"), "pdf", 1, "## Page 1\n\nOne\n\n"),
        ("empty.pdf", b"", "text", 1, ""),
    ],
)
async def test_every_kind_is_read(
    make_reader: Make,
    opened: Open,
    name: str,
    content: bytes,
    kind: str,
    parts: int,
    text: str | None,
) -> None:
    document = await make_reader().read(opened(content), name)
    if text is None:
        text = "ZIP archive: 1 entries, 2 bytes, unpacked 0 bytes\n\nb\\u202e  0 bytes\n"
    found = structs.replace(document, encoding=None)
    assert found == DocumentText(text, kind, parts, None, len(text))


OTHER_KINDS = {
    "a.xls": "1,amount",
    "a.msg": "in RTF, which was not understood",
    "a.eml": "报价.pdf",
    "b.docx": "from **a page**",
    "b.xlsb": ",A,B,C\n1,amount\n2,,,1200.5",
    "c.xls": "| a |",
    "d.xls": "1,a",
    "a.log": "[4,096 NUL bytes]stopped",
    "b.log": "[100,000 NUL bytes]stopped",
    "a.ods": "1,x",
    "form.pdf": "- name: Mia Example",
}
CONTENTS = {
    "a.xls": old_workbook(),
    "a.msg": MAIL["a message that is RTF only"].content,
    "a.eml": MAIL["attachments"].content,
    "b.docx": WORD["embedded documents"].content,
    "b.xlsb": binary_workbook(),
    "c.xls": OTHER["a web page with another name"].content,
    "d.xls": xml_workbook('<Row><Cell><Data ss:Type="String">a</Data></Cell></Row>'),
    "a.log": LOG,
    "b.log": bytes(100_000) + b"stopped\n",
    "a.ods": open_document(
        "spreadsheet",
        "<table:table><table:table-row><table:table-cell><text:p>x</text:p></table:table-cell>"
        "</table:table-row></table:table>",
    ),
    "form.pdf": PDF["form fields"].content,
}


@pytest.mark.needs("namespaces")
@pytest.mark.parametrize("name", OTHER_KINDS)
@pytest.mark.first_rows(5)
async def test_other_kinds_are_read_where_nothing_can_be_imported(
    make_reader: Make, opened: Open, name: str
) -> None:
    document = await make_reader().read(opened(CONTENTS[name]), name)
    assert OTHER_KINDS[name] in document.text


@pytest.mark.needs("namespaces")
@pytest.mark.slow
async def test_reading_goes_on_exactly_where_it_ended(make_reader: Make, opened: Open) -> None:
    descriptor = opened(documents.xlsx({"S": [[n, f"行 {n}"] for n in range(500)]}))
    reader, got, offset = make_reader(), "", 0
    whole = await reader.read(descriptor, "a.xlsx")
    while True:
        part = await reader.read(descriptor, "a.xlsx", offset=offset, max_characters=1_501)
        assert part.total == len(whole.text)
        got += part.text
        if part.next_offset is None:
            break
        offset = part.next_offset
    assert got == whole.text
    with pytest.raises(DocumentUnreadable, match="there is no character"):
        await reader.read(descriptor, "a.xlsx", offset=1_000_000)


@pytest.mark.needs("namespaces")
@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.pdf", documents.encrypted_pdf(), "The PDF is encrypted"),
        ("a.docx", documents.ole_file("EncryptedPackage"), "The Office file is encrypted"),
        ("a.doc", documents.ole_file("WordDocument", "Workbook"), "save it as .docx"),
        ("a.xls", documents.ole_file("Workbook"), "The Excel file is damaged"),
        ("a.msg", documents.ole_file("__substg1.0_0037001F"), "Outlook message is damaged"),
        ("a.rtf", b"{\\rtf1 x}", "save it as .docx"),
        ("a.xlsb", documents.archive({"_rels/.rels": "", "xl/workbook.bin": ""}), "damaged"),
        ("a.pdf", documents.pdf("x")[:200], "The PDF is damaged"),
        ("a.docx", documents.docx(word_paragraph("x"))[:400], "The Word file is damaged"),
        ("a.docx", documents.docx("<w:p>"), "damaged"),
        ("a.docx", documents.docx(word_paragraph("x"), prolog=ENTITY), "entities"),
        ("a.xlsx", documents.replace_entry(WORKBOOK, "xl/workbook.xml", b"<a"), "damaged"),
        ("a.docx", documents.docx("<w:x>" * 9_000 + "</w:x>" * 9_000), "nested too deeply|damaged"),
        ("a.epub", documents.epub(), "damaged"),
        ("a.zip", documents.archive({"a": "b"})[:40], "ZIP archive is damaged"),
        ("a.gz", b"\x1f\x8b\x08" + bytes(90), "compressed or damaged"),
        ("a.bin", bytes(64), "binary file"),
        ("a.txt", documents.picture("PNG"), "It is a picture"),
    ],
)  # fmt: skip
async def test_what_cannot_be_read_is_explained_in_a_sentence(
    make_reader: Make, opened: Open, name: str, content: bytes, sentence: str
) -> None:
    with pytest.raises(DocumentUnreadable, match=sentence):
        await make_reader().read(opened(content), name)


@pytest.mark.needs("namespaces")
@pytest.mark.slow
async def test_bombs_end_within_the_limits(make_reader: Make, opened: Open) -> None:
    small = make_reader(memory_bytes=200 << 20)
    start = f'<w:document xmlns:w="{documents.WORD}"><w:body><w:p><w:r><w:t>'.encode()
    end = b"</w:t></w:r></w:p></w:body></w:document>"
    word = documents.docx("")
    bomb = documents.replace_entry(word, "word/document.xml", start + b"x" * (100 << 20) + end)
    with pytest.raises(DocumentUnreadable, match="too much memory"):
        await small.read(opened(bomb), "a.docx")
    reader = make_reader(timeout_seconds=3)
    with pytest.raises(DocumentUnreadable, match="takes longer than 3 seconds"):
        await reader.read(opened(documents.tar_bomb()), "a.tar.gz")
    reader = make_reader()
    nested = documents.archive({f"{n}.zip": documents.bomb(1) for n in range(50)})
    assert (await reader.read(opened(nested), "42.zip")).parts == 50
    many = documents.archive({f"{n}": "" for n in range(50_000)}, 0)
    listed = await reader.read(opened(many), "many.zip")
    assert (listed.parts, len(listed.text), listed.next_offset) == (50_000, 30_000, 30_000)


@pytest.mark.needs("namespaces")
@pytest.mark.parametrize("pages", [10_000, pytest.param(50_000, marks=pytest.mark.slow)])
async def test_a_pdf_with_very_many_pages_is_read_from_its_first_page_on(
    make_reader: Make, opened: Open, pages: int
) -> None:
    document = await make_reader().read(opened(documents.pdf(*["page"] * pages)), "a.pdf")
    assert document.parts == pages
    assert document.text.startswith("## Page 1\n\npage\n\n## Page 2")
    assert document.next_offset == 30_000


@pytest.mark.needs("namespaces")
async def test_entries_that_overlap_are_listed_or_refused(make_reader: Make, opened: Open) -> None:
    content = bytearray(documents.archive({"a": "x" * 99, "b": "y" * 99}))
    second = content.rfind(b"PK\x01\x02")
    content[second + 42 : second + 46] = bytes(4)  # "b" begins where "a" does
    document = await make_reader().read(opened(bytes(content)), "a.zip")
    assert document.parts == 2


@in_every_sandbox
async def test_a_child_that_is_killed_or_crashes_is_a_sentence(
    make_reader: Make, opened: Open
) -> None:
    for number in (signal.SIGSEGV, signal.SIGKILL):
        before = descendants("self")
        descriptor = opened(documents.tar_bomb())
        reading = asyncio.create_task(make_reader().read(descriptor, "a.tar"))
        os.kill(await confined_child(before), number)
        with pytest.raises(DocumentUnreadable, match="damaged, or needs too much memory"):
            await reading
        await until_left(before)


@in_every_sandbox
async def test_cancelling_leaves_no_process_and_frees_the_place(
    make_reader: Make, opened: Open
) -> None:
    reader, before = make_reader(concurrency=1), descendants("self")
    reading = asyncio.create_task(reader.read(opened(documents.tar_bomb()), "a.tar"))
    waiting = asyncio.create_task(reader.read(opened(b"x"), "a.txt"))
    await confined_child(before)
    assert not waiting.done()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert (await waiting).text == "x"
    await until_left(before)


@pytest.mark.needs("namespaces")
async def test_the_slow_documents_of_a_person_keep_nobody_waiting(
    make_reader: Make, opened: Open
) -> None:
    async def read(person: str, content: bytes, name: str) -> str:
        PERSON.set(person)
        return (await reader.read(opened(content), name)).text

    reader, before = make_reader(), descendants("self")
    slow = [asyncio.create_task(read("anna", documents.tar_bomb(), "a.tar")) for _ in range(3)]
    await confined_child(before)
    for person in ("ben", "", "cleo"):
        assert await read(person, b"x", "a.txt") == "x"
    assert not any(each.done() for each in slow)
    for each in slow:
        each.cancel()
    await asyncio.wait(slow)
    assert await read("anna", b"y", "a.txt") == "y"
    await until_left(before)


@pytest.mark.needs("namespaces")
async def test_a_file_that_changes_meanwhile_is_refused(
    make_reader: Make, opened: Open, tmp_path: Path
) -> None:
    before, descriptor = descendants("self"), opened(documents.slow_pdf(300))
    reading = asyncio.create_task(make_reader().read(descriptor, "a.pdf"))
    await confined_child(before)
    with (tmp_path / "0").open("ab") as file:
        file.write(b"more")
    with pytest.raises(DocumentUnreadable, match="changed while it was read"):
        await reading


async def test_only_regular_files_are_read(make_reader: Make, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    try:
        for descriptor in (reader, os.open(tmp_path, os.O_RDONLY)):
            with pytest.raises(DocumentUnreadable, match="not a regular file"):
                await make_reader().read(descriptor, "a.txt")
    finally:
        os.close(reader)
        os.close(writer)
        os.close(descriptor)


@in_every_sandbox
async def test_the_child_gets_no_secret_and_no_other_descriptor(
    make_reader: Make, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    before = descendants("self")
    reading = asyncio.create_task(make_reader().read(opened(documents.tar_bomb()), "a.tar"))
    pid = await confined_child(before)
    try:
        environment, descriptors = inspect(pid)
        assert b"canary" not in environment
        assert descriptors == {"0", "1", "2"}
    finally:
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


@pytest.mark.parametrize(
    "sandbox",
    [
        pytest.param("bubblewrap.BubblewrapSandbox", marks=pytest.mark.needs("namespaces")),
        "native.NativeSandbox",
    ],
)
@pytest.mark.first_rows(1)
def test_killing_the_parent_ends_the_child(tmp_path: Path, sandbox: str) -> None:
    path = tmp_path / "a.tar.gz"
    path.write_bytes(documents.tar_bomb())
    module, name = sandbox.split(".")
    program = f"""\
import asyncio, os, sys
from functools import partial
from pathlib import Path
from internal.documents.reader import ChildDocumentReader
from internal.sandbox.{module} import {name}
from internal.sandbox.workspaces import SessionFolders
reader = ChildDocumentReader({name}(SessionFolders(Path(sys.argv[1] + "-homes"))))
asyncio.run(reader.read(os.open(sys.argv[1], os.O_RDONLY), "a.tar"))
"""
    with subprocess.Popen([sys.executable, "-c", program, str(path)]) as parent:
        pid = asyncio.run(confined_child(set(), parent.pid))
        parent.kill()
        parent.wait()
        while (text := status(pid)) and "Z (zombie)" not in text:
            pass


@pytest.mark.needs("namespaces")
async def test_a_document_with_another_name_is_read(make_reader: Make, opened: Open) -> None:
    """The libraries are chosen by the name, before anything is read of the file."""
    for name in ("a.zip", "a.xlsx", "a"):
        read = await make_reader().read(opened(documents.docx(word_paragraph("x"))), name)
        assert (read.kind, read.text[:2]) == ("docx", "x\n")
    archive = documents.archive({"a": ""})
    assert (await make_reader().read(opened(archive), "a.docx")).kind == "zip"


@in_every_sandbox
@pytest.mark.first_rows(1)
async def test_web_pages_are_converted_in_their_encoding(make_reader: Make) -> None:
    reader = make_reader()

    async def text(html: bytes, charset: str) -> str:
        return (await reader.convert_html(html, charset, "http://site.test/a")).text

    assert await text("<b>é".encode("latin-1"), "ISO-8859-1") == "**é**"
    assert await text("<meta charset=big5><p>你好".encode("big5"), "") == "你好"
    assert await text(b"<meta charset=quopri><p>a", "no-such-charset") == "a"
    assert await text("<p>你".encode("hz"), "hz") == "你"
    page = await reader.convert_html(b"<a href=b>x</a><script></script>", "", "http://site.test/a")
    assert (page.text, page.scripts) == ("[x](http://site.test/b)", 1)
    assert await reader.convert_html(b"", "", "") == WebPage(has_text=False)
    with pytest.raises(DocumentUnreadable, match=r"longer than 0\.1 seconds"):
        await make_reader(timeout_seconds=0.1).convert_html(b"<a>" * 1_000_000, "", "")


async def test_what_the_sandbox_cannot_start_is_a_sentence(tmp_path: Path, opened: Open) -> None:
    (tmp_path / "file").write_text("")
    reader = ChildDocumentReader(BubblewrapSandbox(SessionFolders(tmp_path / "file")))
    with pytest.raises(DocumentUnreadable, match="no process starts"):
        await reader.read(opened(b"x"), "a.txt")


@pytest.mark.needs("namespaces")
@pytest.mark.slow
async def test_pictures_are_measured_scaled_or_refused(make_reader: Make, opened: Open) -> None:
    reader = make_reader()
    small = await reader.read_picture(opened(documents.picture("PNG", (20, 10))))
    assert (small.media_type, small.width, small.height) == ("image/png", 20, 10)
    assert small.content is None
    for form in ("JPEG", "TIFF", "WEBP"):
        large = await reader.read_picture(opened(documents.picture(form, (4_000, 1_000))))
        assert (large.width, large.height) == (1_568, 392)
        assert large.content
    page = await reader.read_picture(opened(documents.scanned_pdf(2)), 2)
    assert (page.media_type, page.width, page.height) == ("image/png", 400, 200)
    with pytest.raises(DocumentUnreadable, match="there is no page 3"):
        await reader.read_picture(opened(documents.scanned_pdf(2)), 3)
    for content in (b"text", documents.picture("PNG", (600, 600))[:99]):
        with pytest.raises(DocumentUnreadable, match=r"not a picture|damaged"):
            await reader.read_picture(opened(content))
    bomb = documents.picture("PNG", (30_000, 30_000), mode="1")
    with pytest.raises(DocumentUnreadable, match="too many to decode"):
        await reader.read_picture(opened(bomb))


async def test_the_form_of_a_file_is_known_without_a_child(make_reader: Make, opened: Open) -> None:
    reader = make_reader()
    assert reader.form(opened(documents.pdf("x")), "a.txt") == "document"
    assert reader.form(opened(documents.picture("GIF")), "a.txt") == "picture"
    assert reader.form(opened(b"a,b"), "a.csv") == "text"
    assert reader.form(opened(b"\0"), "a.txt") == "binary"

"""ZIP files that hold documents, and hostile XML in them."""

import io
from collections.abc import Callable

import pytest

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.docx import read_docx
from internal.documents.epub import read_epub
from internal.documents.extraction import ExtractedDocument
from internal.documents.package import MAX_ENTRIES, open_package, resolve
from internal.documents.pptx import read_pptx
from internal.documents.xlsx import read_xlsx
from tests.support import documents
from tests.support.documents import slide_text, word_paragraph

EXTERNAL = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
LAUGHS = "<!DOCTYPE x [<!ENTITY a 'ha'>{}]>".format(
    "".join(f"<!ENTITY a{n} '&a{n - 1};&a{n - 1};'>" for n in range(1, 60)).replace("a0", "a")
)
DOCX, PPTX = documents.docx(word_paragraph("x")), documents.pptx(slide_text("x"))
XLSX, EPUB = documents.xlsx({"S": [["x"]]}), documents.epub("<p>x")
Read = Callable[[io.BytesIO], ExtractedDocument]
CASES = [
    (read_docx, DOCX, "word/document.xml"),
    (read_pptx, PPTX, "ppt/presentation.xml"),
    (read_xlsx, XLSX, "xl/workbook.xml"),
    (read_epub, EPUB, "META-INF/container.xml"),
    (read_epub, EPUB, "OEBPS/content.opf"),
]
OTHER_PARTS = [
    (read_docx, DOCX, "word/styles.xml"),
    (read_docx, DOCX, "word/footnotes.xml"),
    (read_pptx, PPTX, "ppt/slides/slide1.xml"),
    (read_xlsx, XLSX, "xl/worksheets/sheet1.xml"),
    (read_xlsx, XLSX, "xl/styles.xml"),
]
"""Parts without which the rest of the document can be read."""


def text_of(read: Read, content: bytes) -> str:
    return "".join(read(io.BytesIO(content)).pieces)


@pytest.mark.parametrize("prolog", [EXTERNAL, LAUGHS])
@pytest.mark.parametrize(("read", "content", "part"), CASES)
def test_entities_are_refused_in_every_part(
    read: Read, content: bytes, part: str, prolog: str
) -> None:
    xml = documents.entry(content, part)
    at = xml.index(b"?>") + 2 if xml.startswith(b"<?xml") else 0
    hostile = xml[:at] + prolog.encode() + xml[at:]
    with pytest.raises(DocumentUnreadable, match="entities"):
        text_of(read, documents.replace_entry(content, part, hostile))


@pytest.mark.parametrize(("read", "content", "part"), CASES)
def test_a_truncated_part_is_damaged(read: Read, content: bytes, part: str) -> None:
    half = documents.entry(content, part)
    broken = documents.replace_entry(content, part, half[: len(half) // 2])
    with pytest.raises(DocumentUnreadable, match="file is damaged"):
        text_of(read, broken)


@pytest.mark.parametrize("prolog", [EXTERNAL, ""])
@pytest.mark.parametrize(("read", "content", "part"), OTHER_PARTS)
def test_a_part_that_cannot_be_read_is_named_and_costs_itself(
    read: Read, content: bytes, part: str, prolog: str
) -> None:
    xml = documents.entry(content, part)
    broken = prolog.encode() + xml if prolog else xml[: len(xml) // 2]
    text = text_of(read, documents.replace_entry(content, part, broken))
    assert "ot understood" in text
    assert part.rpartition("/")[2] in text or "entities" in text


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: DOCX[:-30], "damaged"),
        (lambda: documents.bomb(301), "unpacks to 301 MB"),
        (
            lambda: documents.archive({f"{n}": "" for n in range(MAX_ENTRIES + 1)}),
            "20,001 entries",
        ),
    ],
    ids=["cut", "bomb", "entries"],
)
@pytest.mark.slow
def test_broken_packages_and_bombs_are_refused(make: Callable[[], bytes], sentence: str) -> None:
    with pytest.raises(DocumentUnreadable, match=sentence):
        open_package(io.BytesIO(make()), "Word")


def test_an_encrypted_entry_is_named() -> None:
    entries = {"_rels/.rels": documents.relationships({"m": ("officeDocument", "a.xml")})}
    with pytest.raises(DocumentUnreadable, match="encrypted"):
        read_docx(io.BytesIO(documents.encrypted_archive(entries)))


def test_links_stay_inside_the_package() -> None:
    assert resolve("word", "../media/a%20b.png#x") == "media/a b.png"
    assert resolve("word", "/x.xml") == "x.xml"
    assert resolve("word", "../../../etc/passwd") == "etc/passwd"

"""Text of PDF pages."""

import io
from pathlib import Path

import pytest

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.pdf import MAX_PAGES, read_pdf
from internal.documents.reader import ChildDocumentReader
from tests.support import documents
from tests.support.tools import native_sandbox


def test_each_page_with_text_is_a_piece_also_in_chinese() -> None:
    document = read_pdf(io.BytesIO(documents.pdf("Quarterly report", "", "销售额 上升")))
    assert document.parts == 3
    assert list(document.pieces) == [
        "## Page 1\n\nQuarterly report\n\n",
        "## Page 2\n\n[This page has no text that can be read: it may be a picture.]\n\n",
        "## Page 3\n\n销售额 上升\n\n",
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (documents.encrypted_pdf(), "The PDF is encrypted"),
        (documents.pdf("x")[:120], "The PDF is damaged"),
        (documents.pdf(), "The PDF is damaged"),
        (b"%PDF-1.7\n" + bytes(range(256)) * 40, "The PDF is damaged"),
    ],
)
async def test_what_cannot_be_opened_is_explained(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(content)
    # in a process of its own: pdfium keeps the error of an earlier file
    with path.open("rb") as file, pytest.raises(DocumentUnreadable, match=sentence):
        await ChildDocumentReader(native_sandbox(tmp_path)).read(file.fileno(), "a.pdf")


def test_a_damaged_page_is_named_and_the_others_are_read() -> None:
    content = documents.pdf("one", "two").replace(
        b"9 0 obj\n<</Type/Page/", b"9 0 obj\n<</Type/Gone/"
    )
    assert next(read_pdf(io.BytesIO(content)).pieces) == "## Page 1\n\none\n\n"


def test_a_pdf_is_read_up_to_a_number_of_pages() -> None:
    document = read_pdf(io.BytesIO(documents.pdf(*["page"] * (MAX_PAGES + 1))))
    pieces = list(document.pieces)
    assert (document.parts, len(pieces)) == (MAX_PAGES + 1, MAX_PAGES + 1)
    assert pieces[-1] == "[The PDF has 2,001 pages: those after page 2,000 are not read.]\n"

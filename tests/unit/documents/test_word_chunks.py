"""Word documents that embed web pages."""

import io

import pytest

from internal.documents.docx import WITH_HTML, read_docx
from internal.documents.extraction import OtherReaderNeeded
from internal.documents.word_chunks import read_docx_with_html
from tests.support.documents import word_file, word_paragraph

ARCHIVE = "MIME-Version: 1.0\nContent-Type: text/html\n\n<p>from <b>an archive</b></p>"


def embedding(content: str | bytes) -> bytes:
    """Return a document that embeds another one between two paragraphs."""
    body = f'{word_paragraph("a")}<w:altChunk r:id="aFChunk"/>{word_paragraph("b")}'
    return word_file(body, {"aFChunk": content})


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("<html><p>from <i>a page</i>", "from *a page*"),
        (ARCHIVE, "from **an archive**"),
    ],
)
def test_a_web_page_needs_the_other_reader(content: str, shown: str) -> None:
    file = io.BytesIO(embedding(content))
    with pytest.raises(OtherReaderNeeded) as needed:
        read_docx(file)
    assert needed.value.kind == WITH_HTML
    assert "".join(read_docx_with_html(file).pieces) == f"a\n\n{shown}\n\nb\n\n"


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("plain words", "plain words"),
        (word_file(word_paragraph("from Word")), "from Word"),
        ("{\\rtf1 x}", "[An embedded document in RTF was not understood.]"),
        (b"PK\x03\x04 broken", "[An embedded document was not understood."),
        (embedding("<p>x"), "[An embedded web page was not understood.]"),
    ],
)
def test_other_documents_are_read_or_named(content: str | bytes, shown: str) -> None:
    assert f"a\n\n{shown}" in "".join(read_docx(io.BytesIO(embedding(content))).pieces)

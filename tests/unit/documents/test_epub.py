"""Chapters of books."""

import io

import pytest

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.epub import read_epub
from tests.support import documents


def test_chapters_are_markdown_in_reading_order() -> None:
    content = documents.epub("<h1>第一章</h1><script>x()</script><p>Once</p>", "", "<p>End</p>")
    document = read_epub(io.BytesIO(content))
    assert document.parts == 3
    assert list(document.pieces) == [
        "## Chapter 1\n\n# 第一章\n\nOnce\n\n",
        "",
        "## Chapter 3\n\nEnd\n\n",
    ]


def test_a_book_with_encrypted_chapters_is_refused() -> None:
    encryption = (
        '<encryption xmlns:e="http://www.w3.org/2001/04/xmlenc#">'
        '<e:CipherReference URI="OEBPS/text/chapter%201.xhtml"/></encryption>'
    )
    content = documents.epub("x", extra={"META-INF/encryption.xml": encryption})
    with pytest.raises(DocumentUnreadable, match="encrypted"):
        read_epub(io.BytesIO(content))


def test_a_book_without_chapters_is_damaged() -> None:
    with pytest.raises(DocumentUnreadable, match="no chapters"):
        read_epub(io.BytesIO(documents.epub()))

"""OpenDocument files."""

import io

import pytest

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.open_document import read_odp, read_ods, read_odt
from tests.support.open_document_samples import open_document


def test_a_text_is_markdown_with_its_notes_and_comments() -> None:
    body = (
        '<text:h text:outline-level="2">Terms</text:h><text:p>a<text:s text:c="2"/>b<text:note>'
        "<text:note-citation>1</text:note-citation><text:note-body><text:p>note</text:p>"
        "</text:note-body></text:note><office:annotation><dc:creator>Mia</dc:creator><text:p>why"
        '</text:p></office:annotation> <text:a xlink:href="https://example.com">link</text:a></text:p>'
        "<text:list><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>two"
        "</text:p></text:list-item></text:list></text:list-item></text:list>"
        "<table:table><table:table-row><table:table-cell><text:p>A</text:p></table:table-cell>"
        "</table:table-row></table:table>"
    )
    text = "".join(read_odt(io.BytesIO(open_document("text", body))).pieces)
    assert text == (
        "## Terms\n\na  b[^1] [Comment by Mia: why] [link](https://example.com)\n\n- one\n\n"
        "  - two\n\n| A |\n| --- |\n\n[^1]: note\n"
    )


def test_a_workbook_has_values_hidden_sheets_and_merged_cells() -> None:
    styles = (
        '<style:style style:name="h"><style:table-properties table:display="false"/></style:style>'
    )
    cell = "<table:table-cell office:value-type='{}' {}>{}</table:table-cell>"
    rows = (
        "<table:table-row>"
        + cell.format("string", "table:number-columns-spanned='2'", "<text:p>amount</text:p>")
        + "<table:covered-table-cell/>"
        + cell.format("float", "office:value='1200.5'", "<text:p>1,200.50</text:p>")
        + "</table:table-row><table:table-row table:number-rows-repeated='3'><table:table-cell "
        "table:number-columns-repeated='1024'/></table:table-row><table:table-row>"
        + cell.format("percentage", "office:value='0.125'", "<text:p>13%</text:p>")
        + cell.format("date", "office:date-value='2026-11-03'", "<text:p>03.11.26</text:p>")
        + "</table:table-row>"
    )
    body = f'<table:table table:name="Old" table:style-name="h">{rows}</table:table>'
    text = "".join(read_ods(io.BytesIO(open_document("spreadsheet", body, styles))).pieces)
    assert text == (
        '## Sheet "Old" (hidden)\n\n,A,B,C\n1,amount,,1200.5\n5,12.5%,2026-11-03\n'
        "Merged cells: A1:B1\n\n"
    )


def test_a_presentation_has_slides_with_notes() -> None:
    body = (
        "<draw:page><draw:frame><draw:text-box><text:p>Title</text:p></draw:text-box></draw:frame>"
        "<presentation:notes><draw:frame><draw:text-box><text:p>slowly</text:p></draw:text-box>"
        "</draw:frame></presentation:notes></draw:page>"
    )
    document = read_odp(io.BytesIO(open_document("presentation", body)))
    assert "".join(document.pieces) == "## Slide 1\n\nTitle\n\nNotes: slowly\n\n"


def test_an_encrypted_file_is_named() -> None:
    content = open_document("text", "", manifest="<encryption-data/>")
    with pytest.raises(DocumentUnreadable, match="encrypted"):
        read_odt(io.BytesIO(content))

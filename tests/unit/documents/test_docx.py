"""Text of Word documents."""

import io

from internal.documents.docx import read_docx
from tests.support import documents
from tests.support.documents import word_paragraph


def text_of(content: bytes) -> str:
    return "".join(read_docx(io.BytesIO(content)).pieces)


def test_headings_lists_tables_and_notes_are_markdown() -> None:
    row = "<w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr>"
    table = row.format(word_paragraph("Name"), word_paragraph("a|b")) + row.format(
        word_paragraph("张三") + word_paragraph("李四"), word_paragraph("2")
    )
    body = (
        word_paragraph("Summary", '<w:pStyle w:val="a3"/>')
        + word_paragraph("first", '<w:numPr><w:ilvl w:val="1"/></w:numPr>')
        + "<w:p/>"
        + "<w:p><w:r><w:t>see</w:t><w:tab/><w:t>note</w:t><w:br/>"
        + '<w:footnoteReference w:id="2"/></w:r></w:p>'
        + f"<w:tbl>{table}</w:tbl>"
        + f"<w:sdt><w:sdtContent>{word_paragraph('in a control')}</w:sdtContent></w:sdt>"
    )
    assert text_of(documents.docx(body)) == (
        "## Summary\n\n  - first\n\nsee\tnote\n[^1]\n\n"
        "| Name | a\\|b |\n| --- | --- |\n| 张三 李四 | 2 |\n\n"
        "in a control\n\n[^1]: a note\n"
    )


def test_tracked_changes_are_named_below_the_text_and_second_forms_are_left_out() -> None:
    body = (
        '<w:p><w:r><w:t>the </w:t></w:r><w:del w:author="Mia"><w:r><w:delText>old</w:delText></w:r>'
        "</w:del>"
        "<w:moveFrom><w:r><w:t>here</w:t></w:r></w:moveFrom>"
        "<w:ins><w:r><w:t>new</w:t></w:r></w:ins>"
        "<w:r><w:instrText>PAGE</w:instrText></w:r>"
        "<w:Fallback><w:r><w:t>twice</w:t></w:r></w:Fallback></w:p>"
    )
    assert text_of(documents.docx(body)).startswith(
        'the new\n[Tracked changes: Mia deleted "old"; someone moved away "here";'
        ' someone inserted "new"]\n\n'
    )

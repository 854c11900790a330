"""Text of Word documents."""

import io
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from internal.documents.docx import read_docx
from tests.support import documents
from tests.support.documents import word_file, word_paragraph, word_part
from tests.support.property_examples import examples
from tests.unit.documents.documented_rows import NUMBERING, numbered


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


STYLES = word_part(
    "styles",
    '<w:style w:styleId="h"><w:name w:val="heading 1"/></w:style><w:style w:styleId="n">'
    '<w:name w:val="heading 2"/><w:basedOn w:val="h"/><w:pPr><w:numPr><w:numId w:val="1"/>'
    "</w:numPr></w:pPr></w:style>",
)
WORDS = st.text(st.characters(categories=["L"]), min_size=1, max_size=10)
BLOCKS = st.tuples(
    st.sampled_from(["heading", "numbered heading", "text", "item", "point", "row", "deleted"]),
    WORDS,
)
Block = tuple[
    Literal["heading", "numbered heading", "text", "item", "point", "row", "deleted"], str
]


def written(kind: str, text: str, count: int) -> tuple[str, str]:
    """Return a block of a document, and how it is read; `count` numbers are before it."""
    plain = word_paragraph(text)
    gone = f'<w:p><w:del w:author="Mia"><w:r><w:delText>{text}</w:delText></w:r></w:del></w:p>'
    forms = {
        "heading": (word_paragraph(text, '<w:pStyle w:val="h"/>'), f"# {text}"),
        "numbered heading": (
            word_paragraph(text, '<w:pStyle w:val="n"/>'),
            f"## {count + 1}. {text}",
        ),
        "item": (numbered(text), f"{count + 1}. {text}"),
        "point": (numbered(text, 0, 3), f"- {text}"),
        "row": (f"<w:tbl><w:tr><w:tc>{plain}</w:tc></w:tr></w:tbl>", f"| {text} |\n| --- |"),
        "deleted": (gone, f'[Tracked changes: Mia deleted "{text}"]'),
        "text": (plain, text),
    }
    body, shown = forms[kind]
    return body, f"{shown}\n\n"


@given(st.lists(BLOCKS, max_size=12))
@examples(80)
def test_a_document_is_read_as_it_was_written(blocks: list[Block]) -> None:
    body, expected, count = "", "", 0
    for kind, text in blocks:
        content, shown = written(kind, text, count)
        count += kind in {"item", "numbered heading"}
        body, expected = body + content, expected + shown
    assert text_of(word_file(body, {"styles": STYLES, "numbering": NUMBERING})) == expected


def test_a_document_that_ends_early_is_read_up_to_there() -> None:
    whole = word_file(word_paragraph("first") + word_paragraph("second"))
    part = "word/document.xml"
    half = documents.entry(whole, part).partition(b"second")[0]
    text = text_of(documents.replace_entry(whole, part, half))
    assert text.startswith("first\n\n[The rest of the document was not understood.")

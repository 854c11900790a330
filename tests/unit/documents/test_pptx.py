"""Text of presentations."""

import io

from hypothesis import given
from hypothesis import strategies as st

from internal.documents.pptx import read_pptx
from tests.support import documents
from tests.support.documents import slide_text
from tests.support.property_examples import examples

WORDS = st.text(st.characters(categories=["L"]), min_size=1, max_size=10)


def test_slides_are_in_the_order_of_the_presentation_with_tables_and_notes() -> None:
    cell = "<a:tc><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>"
    row = f"<a:tr>{cell.format('A')}{cell.format('乙')}</a:tr>"
    number = (
        '<p:sp><p:nvSpPr><p:nvPr><p:ph type="sldNum"/></p:nvPr></p:nvSpPr>'
        "<p:txBody><a:p><a:r><a:t>7</a:t></a:r></a:p></p:txBody></p:sp>"
    )
    first = slide_text("Title", "line") + number
    second = f"<p:graphicFrame><a:graphic><a:tbl>{row}{row}</a:tbl></a:graphic></p:graphicFrame>"
    document = read_pptx(io.BytesIO(documents.pptx(first, second, notes="speak slowly")))
    assert document.parts == 2
    assert list(document.pieces) == [
        "## Slide 1\n\nTitle\nline\n\nNotes: speak slowly\n\n",
        "## Slide 2\n\n| A | 乙 |\n| --- | --- |\n| A | 乙 |\n\n",
    ]


@given(st.lists(st.tuples(st.lists(WORDS, min_size=1, max_size=4), st.booleans()), max_size=5))
@examples(50)
def test_slides_are_read_as_they_were_made(slides: list[tuple[list[str], bool]]) -> None:
    hidden = [number for number, (_, is_hidden) in enumerate(slides, start=1) if is_hidden]
    content = documents.pptx(*(slide_text(*lines) for lines, _ in slides), hidden=hidden)
    expected = "".join(
        f"## Slide {number}{' (hidden)' if is_hidden else ''}\n\n{chr(10).join(lines)}\n\n"
        for number, (lines, is_hidden) in enumerate(slides, start=1)
    )
    assert "".join(read_pptx(io.BytesIO(content)).pieces) == expected

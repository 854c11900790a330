"""Excel files from before 2007."""

import datetime as dt
import io

import pytest
import xlwt  # type: ignore[import-untyped]  # it has no type hints
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.xls import read_xls
from tests.support import documents
from tests.support.property_examples import examples


def saved(book: xlwt.Workbook) -> bytes:
    output = io.BytesIO()
    book.save(output)
    return output.getvalue()


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 40), st.integers(0, 6)),
        st.one_of(st.integers(-999, 999), st.text("aé中", min_size=1, max_size=5), st.booleans()),
        min_size=1,
        max_size=10,
    )
)
@examples(30)
def test_every_value_is_read_at_its_place(cells: dict[tuple[int, int], int | str]) -> None:
    book = xlwt.Workbook()
    sheet = book.add_sheet("S")
    for (row, column), value in cells.items():
        sheet.write(row, column, value)
    lines = "".join(read_xls(io.BytesIO(saved(book))).pieces).splitlines()
    found = {int(line.split(",")[0]): line.split(",")[1:] for line in lines[3:] if "," in line}
    for (row, column), value in cells.items():
        shown = str(value).upper() if isinstance(value, bool) else str(value)
        assert found[row + 1][column] == shown


def test_formats_and_what_is_hidden_are_shown() -> None:
    book = xlwt.Workbook()
    sheet = book.add_sheet("Old")
    sheet.write(0, 0, 0.25, xlwt.easyxf(num_format_str="0%"))
    sheet.write(1, 0, dt.date(2026, 11, 3), xlwt.easyxf(num_format_str="D/M/YYYY"))
    sheet.write_merge(2, 3, 0, 1, "wide")
    sheet.row(1).hidden = True
    sheet.col(2).hidden = True
    book.add_sheet("Gone").visibility = 1
    text = "".join(read_xls(io.BytesIO(saved(book))).pieces)
    assert ",A\n1,25%\n2,2026-11-03\n3,wide\n" in text
    assert "Merged cells: A3:B4\nHidden rows: 2\nHidden columns: C\n" in text
    assert '## Sheet "Gone" (hidden)\n' in text


def test_damage_is_named() -> None:
    for content in (documents.ole_file("Workbook"), saved_empty()[:600]):
        with pytest.raises(DocumentUnreadable, match="damaged"):
            read_xls(io.BytesIO(content))


def saved_empty() -> bytes:
    book = xlwt.Workbook()
    book.add_sheet("S")
    return saved(book)

"""Rows of workbooks."""

import csv
import datetime as dt
import io
import re

import openpyxl
from hypothesis import given
from hypothesis import strategies as st

from internal.documents.sheets import MAX_CELLS
from internal.documents.xlsx import read_xlsx
from tests.support import documents
from tests.support.property_examples import examples


def text_of(content: bytes) -> str:
    return "".join(read_xlsx(io.BytesIO(content)).pieces)


def test_sheets_are_csv_with_dates_numbers_and_quoted_text() -> None:
    day = dt.datetime(2026, 11, 23)  # noqa: DTZ001  # as Excel stores it
    rows: list[list[object]] = [
        ["日期", "Sum", "Note"],
        [day, 3.0, 'a,"b"'],
        [],
        [None, 1.25, None],
        [day.replace(hour=9), True, ""],
    ]
    content = documents.xlsx({"Sales": rows, "Empty": []})
    assert read_xlsx(io.BytesIO(content)).parts == 2
    assert text_of(content) == (
        '## Sheet "Sales"\n\n,A,B,C\n1,日期,Sum,Note\n2,2026-11-23,3,"a,""b"""\n4,,1.25\n'
        '5,2026-11-23 09:00:00,TRUE\n\n## Sheet "Empty"\n\n'
        "[No cell of this sheet has a value.]\n\n"
    )


def test_a_formula_is_shown_when_no_value_is_stored() -> None:
    content = documents.xlsx({"S": [[1, 2], ["=SUM(A1:B1)", "x"]]})
    assert "1,1,2\n2,=SUM(A1:B1),x\n" in text_of(content)
    sheet = "xl/worksheets/sheet1.xml"
    stored = (
        documents.entry(content, sheet)
        .replace(b"<v />", b"<v>3</v>")
        .replace(b"<v></v>", b"<v>3</v>")
    )
    assert "1,1,2\n2,3,x\n" in text_of(documents.replace_entry(content, sheet, stored))


def test_a_declared_size_of_the_whole_grid_costs_nothing() -> None:
    content = documents.xlsx({"S": [["a"]]})
    sheet = "xl/worksheets/sheet1.xml"
    huge = documents.entry(content, sheet).replace(
        b"<sheetData>", b'<dimension ref="A1:XFD1048576"/><sheetData>'
    )
    assert "XFD1048576" in huge.decode()
    assert text_of(documents.replace_entry(content, sheet, huge)) == '## Sheet "S"\n\n,A\n1,a\n\n'


SHEET = "xl/worksheets/sheet1.xml"


def with_rows(rows: bytes) -> bytes:
    """Return a workbook of one sheet with these rows."""
    content = documents.xlsx({"S": [["a"]]})
    before, _, rest = documents.entry(content, SHEET).partition(b"<sheetData>")
    _, _, after = rest.partition(b"</sheetData>")
    before = re.sub(rb"<dimension [^>]*>", b"", before)
    sheet = b"".join([before, b"<sheetData>", rows, b"</sheetData>", after])
    return documents.replace_entry(content, SHEET, sheet)


def test_a_workbook_is_read_up_to_a_number_of_cells() -> None:
    rows = b"".join(b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (n, n) for n in range(1, 99))
    text = text_of(with_rows(rows))
    assert text.endswith(f"[The workbook has over {MAX_CELLS:,} cells: the rest is missing.]\n")
    assert len(text) <= MAX_CELLS + 1_000
    last = text_of(with_rows(b'<row r="1048576"><c r="A1048576"><v>1</v></c></row>'))
    assert last == '## Sheet "S"\n\n,A\n1048576,1\n\n'


def test_numbers_are_read_where_the_texts_are_damaged() -> None:
    content = documents.workbook_file(
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1"><v>7</v></c>'
        "</row>"
    )
    targets = {
        "s": ("worksheet", "worksheets/sheet1.xml"),
        "t": ("sharedStrings", "../S.xml"),
    }
    content = documents.replace_entry(
        content, "xl/_rels/workbook.xml.rels", documents.relationships(targets).encode()
    )
    content = documents.replace_entry(content, "S.xml", b"<sst><si><t>one</t></si><si><t>tw")
    text = text_of(content)
    assert "1,one,[a text that is not in the file],7\n" in text
    assert "[Not understood and left out: S.xml.]" in text


VALUES = st.one_of(
    st.integers(-(10**9), 10**9),
    st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=8).filter(
        lambda text: not text.startswith("=")
    ),
    st.booleans(),
    st.dates(dt.date(1901, 1, 1), dt.date(2099, 12, 31)),
)


@given(
    st.dictionaries(
        st.tuples(st.integers(1, 60), st.integers(1, 8)), VALUES, min_size=1, max_size=15
    )
)
@examples(60)
def test_every_value_that_another_program_writes_is_read_at_its_place(
    cells: dict[tuple[int, int], object],
) -> None:
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    for (row, column), value in cells.items():
        cell = sheet.cell(row, column)
        cell.value = value  # type: ignore[assignment]  # openpyxl takes each of them
        if isinstance(value, str):
            cell.data_type = "s"  # also of a text that looks like an error
    output = io.BytesIO()
    book.save(output)
    body = text_of(output.getvalue()).partition("\n\n")[2]
    found = {
        (int(line[0]), column): value
        for line in list(csv.reader(io.StringIO(body)))[1:]
        for column, value in enumerate(line[1:], start=1)
        if line and value
    }
    shown = {
        place: str(value).upper() if isinstance(value, bool) else str(value)
        for place, value in cells.items()
    }
    assert found == shown

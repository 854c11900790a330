"""Rows of workbooks."""

import datetime as dt
import io

from internal.documents.xlsx import read_xlsx
from tests.support import documents


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
        '## Sheet "Sales"\n\n日期,Sum,Note\n2026-11-23,3,"a,""b"""\n,1.25\n'
        '2026-11-23 09:00:00,TRUE\n\n## Sheet "Empty"\n\n\n'
    )


def test_a_formula_is_shown_when_no_value_is_stored() -> None:
    content = documents.xlsx({"S": [[1, 2], ["=SUM(A1:B1)", "x"]]})
    assert "1,2\n=SUM(A1:B1),x\n" in text_of(content)
    sheet = "xl/worksheets/sheet1.xml"
    stored = (
        documents.entry(content, sheet)
        .replace(b"<v />", b"<v>3</v>")
        .replace(b"<v></v>", b"<v>3</v>")
    )
    assert "1,2\n3,x\n" in text_of(documents.replace_entry(content, sheet, stored))


def test_a_declared_size_of_the_whole_grid_costs_nothing() -> None:
    content = documents.xlsx({"S": [["a"]]})
    sheet = "xl/worksheets/sheet1.xml"
    huge = documents.entry(content, sheet).replace(
        b"<sheetData>", b'<dimension ref="A1:XFD1048576"/><sheetData>'
    )
    assert "XFD1048576" in huge.decode()
    assert text_of(documents.replace_entry(content, sheet, huge)) == '## Sheet "S"\n\na\n\n'

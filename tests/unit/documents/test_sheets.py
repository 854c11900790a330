"""Sheets as CSV with the numbers of their rows."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from internal.documents.sheets import (
    MAX_CELLS,
    CellBudget,
    column_letters,
    csv_rows,
    joined_runs,
    listing,
    range_name,
)
from tests.support.property_examples import examples

TEXTS = st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=8)


@given(st.dictionaries(st.integers(1, 500), st.lists(TEXTS, max_size=5), max_size=20))
@examples(100)
def test_every_value_is_found_at_its_row_and_column(sheet: dict[int, list[str]]) -> None:
    rows = sorted(sheet.items())
    text = "".join(csv_rows(rows, CellBudget()))
    found = {
        (int(row[0]), column): value
        for row in list(csv.reader(io.StringIO(text)))[1:]
        for column, value in enumerate(row[1:])
        if value
    }
    given_values = {
        (number, column): value
        for number, values in rows
        for column, value in enumerate(values)
        if value
    }
    assert found == given_values


def test_the_cells_of_all_sheets_are_counted() -> None:
    budget = CellBudget()
    assert budget.take(MAX_CELLS)
    assert not budget.note()
    assert list(csv_rows([(1, ["a"])], budget)) == [""]
    assert "over 400,000 cells" in budget.note()


def test_places_and_lists_have_the_names_that_excel_shows() -> None:
    assert [column_letters(each) for each in (1, 26, 27, 703, 16_384)] == [
        *("A", "Z", "AA", "AAA", "XFD")
    ]
    assert range_name(2, 1, 4, 28) == "A2:AB4"
    assert joined_runs([1, 3, 4, 5, 9]) == ["1", "3-5", "9"]
    assert listing("Hidden rows", []) == ""

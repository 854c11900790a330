"""Numbers of spreadsheets as their formats show them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.documents.number_formats import format_number
from tests.support.property_examples import examples


@pytest.mark.parametrize(
    ("text", "code", "shown"),
    [
        ("0.25", "0%", "25%"),
        ("0.25", "0.00%", "25.00%"),
        ("0.125", "0%", "12.5%"),
        ("-0.05", "0.0%;[Red]-0.0%", "-5.0%"),
        ("46329", "m/d/yyyy", "2026-11-03"),
        ("46329", "[$-409]mmm\\-yy;@", "2026-11-03"),
        ("46329.5", 'yyyy"年"m"月"d"日" h:mm', "2026-11-03 12:00"),
        ("46329", "yyyy-mm-dd h:mm:ss", "2026-11-03"),
        ("0.5", "h:mm AM/PM", "12:00"),
        ("1.5", "[h]:mm:ss", "36:00:00"),
        ("-1", "yyyy-mm-dd", "-1"),
        ("9999999", "yyyy-mm-dd", "9999999"),
        ("1200.5", '[$€-407] #,##0.00_);\\("$"#,##0.00\\)', "€ 1200.5"),
        ("12.5", '0.0" kg"', "12.5 kg"),
        ("420", "00000", "00420"),
        ("1234567", '0.0,,"M"', "1.2346M"),
        ("1", '"Yes";"Yes";"No"', "Yes"),
        ("0", '"Yes";"Yes";"No"', "No"),
        ("0", '_-* #,##0_-;-* #,##0_-;_-* "-"_-;_-@_-', "0"),
        ("0.5", "# ?/?", "0.5"),
        ("12345", "0.00E+00", "12345"),
        ("5551234", "000\\-0000", "5551234"),
        ("0.30000000000000004", "General", "0.3"),
        ("12345678901234567890", "General", "12345678901234567890"),
        ("4.89290024005183E+17", "0", "489290024005183000"),
        ("1E+25", "General", "1e+25"),
        ("not a number", "0%", "not a number"),
        ("3", ";;;", "3"),
        ("3", "", "3"),
    ],
)
def test_a_number_is_shown_as_its_format_says(text: str, code: str, shown: str) -> None:
    assert format_number(text, code) == shown


def test_dates_are_counted_from_1904_where_the_workbook_says_so() -> None:
    assert format_number("44867", "yyyy-mm-dd", since_1904=True) == "2026-11-03"
    # Excel counts a 29 February 1900
    assert [format_number(each, "yyyy-mm-dd") for each in ("1", "61")] == [
        "1900-01-01",
        "1900-03-01",
    ]


@given(
    st.decimals(-10_000_000, 10_000_000, places=4),
    st.sampled_from(["General", "0", "0.00", "#,##0", '#,##0.00 "€"', "$#,##0", "0.0%", "0%"]),
)
@examples(200)
def test_no_format_loses_a_digit(value: object, code: str) -> None:
    number = float(str(value))
    shown = re.sub(r"[^0-9.-]", "", format_number(repr(number), code))
    expected = number * 100 if "%" in code else number
    assert float(shown) == pytest.approx(expected, abs=1e-4)


@given(st.text('0#?.,%;"\\_*[]$€-hmsyde/E+@ ', max_size=20), st.floats(allow_nan=False))
@examples(300)
def test_every_format_shows_something(code: str, value: float) -> None:
    assert format_number(repr(value), code)

"""Form fields and comments on PDF pages."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.documents.pdf import read_pdf
from internal.documents.pdf_annotations import MAX_ANNOTATIONS
from tests.support.property_examples import examples
from tests.unit.documents.documented_rows import FIELD, NOTE, pdf_page

TEXTS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20)


def text_of(content: bytes) -> str:
    return "".join(read_pdf(io.BytesIO(content)).pieces)


def encoded(text: str) -> str:
    """Return a text string of PDF."""
    return f"<FEFF{text.encode('utf-16-be').hex()}>"


@given(st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=6))
@examples(50)
def test_every_field_is_read_with_its_value(fields: dict[str, str]) -> None:
    places = " ".join(f"{number} 0 R" for number in range(6, 6 + len(fields)))
    widgets = [
        f"{FIELD}/FT/Tx/T{encoded(name)}/V{encoded(value)}>>" for name, value in fields.items()
    ]
    text = text_of(pdf_page("", places, f"/AcroForm<</Fields[{places}]>>", *widgets))
    assert text.splitlines()[3:-1] == [f"- {name}: {value}" for name, value in fields.items()]


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("/FT/Ch/Ff 131072/Opt[(red)(blue)]/V(blue)", "blue"),
        ("/FT/Ch/Opt[(red)(blue)]/V(red)", "red"),
        ("/FT/Tx/Ff 8192/V(secret)", "(a password, not shown)"),
        ("/FT/Sig", "(a signature)"),
        ("/FT/Tx", "(empty)"),
        ("/FT/Tx/V(one\\rtwo)", "one\ntwo"),
    ],
)
def test_a_field_is_shown_by_its_kind(field: str, shown: str) -> None:
    content = pdf_page("", "6 0 R", "/AcroForm<</Fields[6 0 R]>>", f"{FIELD}/T(f){field}>>")
    assert f"- f: {shown}\n" in text_of(content)


def test_a_button_is_no_field_and_a_field_without_a_form_is_read() -> None:
    button = pdf_page(
        "x", "6 0 R", "/AcroForm<</Fields[6 0 R]>>", f"{FIELD}/FT/Btn/Ff 65536/T(b)>>"
    )
    assert text_of(button) == "## Page 1\n\nx\n\n"
    assert "- f: Mia" in text_of(pdf_page("", "6 0 R", "", f"{FIELD}/FT/Tx/T(f)/V(Mia)>>"))


def test_further_annotations_are_counted() -> None:
    many = " ".join(["6 0 R"] * (MAX_ANNOTATIONS + 1))
    text = text_of(pdf_page("x", many, "", f"{NOTE}/Subtype/Text/Contents(y)>>"))
    assert "[The page has 2,001 annotations: the rest is missing.]" in text
    assert text.count("[Comment: y]") == MAX_ANNOTATIONS


def test_stamps_and_attached_files_are_named() -> None:
    stamp = f"{NOTE}/Subtype/Stamp/Name/Approved>>"
    file = f"{NOTE}/Subtype/FileAttachment/FS<</Type/Filespec/F(a.csv)/UF(a.csv)>>>>"
    text = text_of(pdf_page("x", "6 0 R 7 0 R", "", stamp, file))
    assert "[Stamp: " in text
    assert "[Attached file: a.csv" in text

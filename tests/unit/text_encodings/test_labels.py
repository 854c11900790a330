"""Labels of charsets."""

import pytest

from internal.text_encodings.labels import codec_of_label, name_of


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("gb2312", "gb18030"),
        (" 'ISO-8859-1' ", "cp1252"),
        ("us-ascii", "cp1252"),
        ("big5", "big5hkscs"),
        ("x-sjis", "cp932"),
        ("ks_c_5601-1987", "cp949"),
        ("windows-1251", "cp1251"),
        ("cp437", "cp437"),
        ("utf8", "utf-8"),
    ],
)
def test_label_is_read_as_browsers_read_it(label: str, codec: str) -> None:
    assert codec_of_label(label) == codec


@pytest.mark.parametrize("label", ["", "nonsense", "rot13", "base64", "utf-7", "unicode_escape"])
def test_label_of_no_charset_is_unknown(label: str) -> None:
    assert codec_of_label(label) is None


def test_names_are_those_that_people_know() -> None:
    assert (name_of("cp1252"), name_of("gb18030"), name_of("koi8-r")) == (
        *("Windows-1252", "GB18030", "KOI8-R"),
    )

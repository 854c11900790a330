"""Labels of charsets."""

import codecs

import pytest
import webencodings  # type: ignore[import-untyped]  # has no type hints

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
        ("unicode-1-1-utf-8", "utf-8"),
        ("utf-16", "utf-16-le"),
        ("windows-874", "cp874"),
        # Python's, beside those of the standard
        ("hz-gb-2312", "hz"),
    ],
)
def test_label_is_read_as_browsers_read_it(label: str, codec: str) -> None:
    assert codec_of_label(label) == codec


@pytest.mark.parametrize(
    "label", ["", "nonsense", "rot13", "base64", "utf-7", "unicode_escape", "é"]
)
def test_label_of_no_charset_is_unknown(label: str) -> None:
    assert codec_of_label(label) is None


def test_every_label_of_the_standard_is_known_to_python() -> None:
    unknown = {label for label in webencodings.LABELS if codec_of_label(label) is None}
    assert unknown == {"iso-2022-cn", "iso-2022-cn-ext", "replacement", "x-user-defined"}
    for label in set(webencodings.LABELS) - unknown:
        codecs.lookup(codec_of_label(label) or "")


def test_names_are_those_that_people_know() -> None:
    assert (name_of("cp1252"), name_of("gb18030"), name_of("koi8-r")) == (
        *("Windows-1252", "GB18030", "KOI8-R"),
    )

"""Names of text encodings on the web."""

import codecs

import pytest
import webencodings  # type: ignore[import-untyped]  # has no type hints

from internal.normal_forms.web_encodings import (
    codec_of_label,
    declared_codec,
    is_utf8,
    marked_codec,
)


@pytest.mark.parametrize(
    ("label", "content", "text"),
    [
        ("gb2312", "镕".encode("gbk"), "镕"),
        ("GBK", "\U00020087".encode("gb18030"), "\U00020087"),
        (" 'Shift_JIS' ", "①".encode("cp932"), "①"),
        ("ks_c_5601-1987", "똠".encode("cp949"), "똠"),
        ("big5", "㗎".encode("big5hkscs"), "㗎"),
        ("iso-8859-1", b"\x93", "“"),
        ("ascii", b"\x80", "€"),
        ("unicode-1-1-utf-8", "é".encode(), "é"),
        ("utf-16", "é".encode("utf-16-le"), "é"),
        ("windows-874", "ก".encode("cp874"), "ก"),
        # Python's, beside those of the standard
        ("hz-gb-2312", "你".encode("hz"), "你"),
        ("cp850", "é".encode("cp850"), "é"),
    ],
)
def test_a_label_names_the_encoding_of_browsers(label: str, content: bytes, text: str) -> None:
    assert content.decode(codec_of_label(label) or "") == text


def test_every_label_of_the_standard_is_known_to_python() -> None:
    unknown = [label for label in webencodings.LABELS if codec_of_label(label) is None]
    assert {*unknown} == {"iso-2022-cn", "iso-2022-cn-ext", "replacement", "x-user-defined"}
    for label in set(webencodings.LABELS) - {*unknown}:
        codecs.lookup(codec_of_label(label) or "")


@pytest.mark.parametrize("label", ["", "hex", "punycode", "unicode_escape", "utf-7", "none", "é"])
def test_what_is_no_encoding_of_text_is_unknown(label: str) -> None:
    assert codec_of_label(label) is None


def test_the_beginning_of_a_text_tells_its_encoding() -> None:
    assert marked_codec("é".encode("utf-8-sig")) == "utf-8-sig"
    assert marked_codec("é".encode("utf-16")) == "utf-16"
    assert marked_codec("é".encode("utf-32")) == "utf-32"
    assert marked_codec(b"") is None
    assert declared_codec(b"<META CHARSET = big5 >") == "big5hkscs"
    assert declared_codec(b"<?xml version='1.0' encoding='koi8-r'?>") == "koi8-r"
    assert declared_codec(b"<metadata charset=big5>") is None
    assert declared_codec(b" " * 5_000 + b"<meta charset=big5>") is None
    assert is_utf8("世".encode()[:-1])
    assert not is_utf8(b"caf\xe9 ")

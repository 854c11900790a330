"""The way of a text from bytes and back."""

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.text_encodings.conversion import (
    NotEncodable,
    decode,
    decode_exactly,
    decode_utf8,
    encode_exactly,
)


def test_decoded_text_comes_with_its_encoding() -> None:
    text, encoding = decode("Größe Müller".encode("cp1252"))

    assert (text, encoding.name) == ("Größe Müller", "Windows-1252")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        "Größe\r\n".encode(),
        codecs.BOM_UTF8 + "Größe".encode(),
        "Größe".encode("utf-16"),
        codecs.BOM_UTF16_BE + "Größe".encode("utf-16-be"),
        "Größe".encode("utf-32"),
        "Größe Müller\n".encode("cp1252"),
        "姓名,城市\r\n王小明,北京\r\n".encode("gb18030"),
        "服务\xff".encode()[:-1],
    ],
)
def test_text_becomes_the_same_bytes_again(content: bytes) -> None:
    decoded = decode_exactly(content)

    assert decoded is not None
    text, encoding = decoded
    assert encode_exactly(text, encoding, content) == content
    assert not text.startswith("\ufeff")


@settings(deadline=None)  # the first one loads the detector
@given(st.binary(max_size=300))
def test_what_is_decoded_exactly_is_never_changed(content: bytes) -> None:
    if decoded := decode_exactly(content):
        assert encode_exactly(*decoded, content) == content


def test_character_that_an_encoding_lacks_is_named() -> None:
    content = "Größe Müller".encode("cp1252")
    decoded = decode_exactly(content)

    assert decoded is not None
    with pytest.raises(NotEncodable, match="Windows-1252 has no '你'"):
        encode_exactly("你好", decoded[1], content)


def test_short_way_is_for_utf8_only() -> None:
    assert decode_utf8(codecs.BOM_UTF8 + "ü".encode()) == "ü"
    assert decode_utf8("ü".encode("cp1252")) is None
    assert decode_utf8("name;value\n".encode("utf-16-le")) is None
    assert decode_utf8("ご注文".encode("iso2022_jp")) is None
    assert decode_utf8(b"\x1b$ is no Japanese") == "\x1b$ is no Japanese"

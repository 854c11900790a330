"""Encodings of texts with a known encoding."""

# ruff: noqa: RUF001 - signs of other scripts that look like Latin ones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.text_encodings.detection import EncodingDetector, detect

LOG = "服务启动完成，监听端口八四二零。用户登录成功；订单已保存。"

GERMAN = "Name;Straße;Größe\nMüller;Königsallee 5;groß\n"
TEXTS = (
    (GERMAN, "cp1252"),
    ("姓名,城市\n王小明,北京\n", "gb18030"),
    ("姓名,地址\n王小明,臺北市中正區\n", "big5"),
    ("氏名,住所\n田中太郎,東京都千代田区\n", "cp932"),
    ("이름,주소\n김철수,서울특별시 강남구\n", "euc-kr"),
    ("Имя;Город\nИван;Москва\n", "cp1251"),
    ("Prénom;Société\nRené;Éts Lefèvre\n", "cp1252"),
    ("Größe Müller naïve", "latin-1"),
    ("Müller", "cp1252"),
    ("10 €", "cp1252"),
    ("“quoted” – it’s done", "cp1252"),
    ("El niño comió mañana en España, señor.", "cp1252"),
    ("Não há informações sobre a opção.", "cp1252"),
    ("Ærø er en ø, å jå, på færgen", "cp1252"),
    ("Привет, мир", "koi8-r"),
    ("Файл не найден", "cp866"),
    ("你好", "gb18030"),
    ("error: 文件不存在", "gb18030"),
    ("你好世界", "big5"),
    ("こんにちは", "cp932"),
    ("こんにちは", "euc-jp"),
    ("ご注文ありがとうございます。", "iso2022_jp"),
    ("안녕하세요", "cp949"),
    ("Zażółć gęślą jaźń", "cp1250"),
    ("Příliš žluťoučký kůň úpěl ďábelské ódy", "cp1250"),
)


@pytest.mark.parametrize(("text", "codec"), TEXTS)
def test_text_without_a_declaration_is_read_in_its_likeliest_encoding(
    text: str, codec: str
) -> None:
    encoding = detect(text.encode(codec))

    assert text.encode(codec).decode(encoding.codec) == text
    assert encoding.source == "guess"
    assert "guess" in encoding.remark
    assert encoding.name in encoding.remark


@pytest.mark.parametrize("size", range(4, 60))
def test_utf8_with_a_torn_end_is_utf8(size: int) -> None:
    content = LOG.encode()[:size]

    assert content.decode(detect(content).codec, "replace").startswith(LOG[: size // 3])


@pytest.mark.parametrize("start", [1, 2, 3, 4, 5])
def test_utf8_with_a_torn_start_is_utf8(start: int) -> None:
    assert detect(LOG.encode()[start:]).is_utf8


def test_single_damaged_bytes_do_not_make_utf8_something_else() -> None:
    assert detect(LOG.encode() + b"\xff" + LOG.encode()).is_utf8


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be"])
def test_mark_or_pattern_of_wide_text_decides(codec: str) -> None:
    content = "Name;Größe\nMüller;groß\n".encode(codec)

    assert content.decode(detect(content).codec) == "Name;Größe\nMüller;groß\n"


DECLARED = (
    ('<html><head><meta charset="iso-8859-1"></head><p>Größe</p>', "cp1252"),
    ("<meta http-equiv='Content-Type' content='text/html; charset=big5'><p>臺北市政府", "big5"),
    ('<?xml version="1.0" encoding="Shift_JIS"?><a>東京</a>', "cp932"),
    ('<!-- <meta charset="big5"> --><meta charset=gb2312><p>北京', "gb18030"),
    ('<meta charset="windows-1251"><p>б', "cp1251"),
    ('@charset "iso-8859-2"; a::before { content: "Łódź" }', "iso8859-2"),
    ("#!/bin/python\n# -*- coding: euc-jp -*-\nprint('日')\n", "euc-jp"),
)


@pytest.mark.parametrize(("text", "codec"), DECLARED)
def test_declared_encoding_comes_before_a_guess(text: str, codec: str) -> None:
    encoding = detect(text.encode(codec))

    assert text.encode(codec).decode(encoding.codec) == text
    assert encoding.source == "declared"
    assert "guess" not in encoding.remark


@pytest.mark.parametrize("codec", ["koi8-r", "hz", "utf-16-le", "utf-32-be"])
def test_encoding_named_beside_the_text_is_used(codec: str) -> None:
    text = "тест\n" if codec == "koi8-r" else "你好\n北京\n"
    assert detect(text.encode(codec), codec).codec == codec
    assert detect(b"plain text", codec).is_utf8


def test_declaration_that_the_text_refutes_is_not_believed() -> None:
    saved_again = '<meta charset="gb2312"><p>北京市政府'.encode()

    assert detect(saved_again).is_utf8


def test_text_that_only_mentions_a_declaration_declares_none() -> None:
    text = "Write `<meta charset=big5>` into the page.\nGröße, Müller, Straße\n"

    assert detect(text.encode("cp1252")).codec == "cp1252"


def test_guess_looks_beyond_a_long_ascii_beginning() -> None:
    content = b"line of ascii\n" * 100_000 + GERMAN.encode("cp1252")

    assert content.decode(detect(content).codec).endswith(GERMAN)


@settings(deadline=None)  # the first one loads the detector
@given(st.binary(max_size=200), st.integers(1, 7))
def test_chunks_do_not_change_the_result(content: bytes, size: int) -> None:
    whole, pieces = EncodingDetector(), EncodingDetector()
    whole.feed(content)
    for at in range(0, len(content), size):
        pieces.feed(content[at : at + size])

    assert (pieces.result().source == "guess") == (whole.result().source == "guess")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\x1b")))
def test_every_text_in_utf8_is_utf8(text: str) -> None:
    assert detect(text.encode()).is_utf8 or text.startswith(("<", "@", "#"))

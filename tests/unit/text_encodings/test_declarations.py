"""Charsets that texts name themselves."""

import pytest

from internal.text_encodings.declarations import declared_codec


@pytest.mark.parametrize(
    ("head", "codec"),
    [
        (b"\n<!doctype html><meta charset='UTF-8'>", "utf-8"),
        (b'<meta http-equiv="content-type" content="text/html;charset=gb2312" />', "gb18030"),
        (b"<?xml version='1.0' encoding='euc-kr'?>", "cp949"),
        (b'<?xml version="1.0" encoding="UTF-16"?>', "utf-8"),
        (b"<!-- <meta charset=big5> -->", None),
        (b"<meta charset=nonsense>", None),
        (b"<metadata charset=big5>", None),
        (b"text <meta charset=big5>", None),
        (b"# vim: set fileencoding=koi8-r :", "koi8-r"),
        (b"\n\n# coding: koi8-r", None),
        (b"x = 1 # a line\nprint(coding)", None),
        (b"", None),
    ],
)
def test_a_declaration_is_read_where_it_counts(head: bytes, codec: str | None) -> None:
    assert declared_codec(head) == codec

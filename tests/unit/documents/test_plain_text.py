"""Encodings of text files."""

import io

import pytest

from internal.documents.plain_text import read_text

TEXT = "名称,数量\n苹果,3\n"


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "gb18030", "utf-16-be-mark"]
)
def test_text_is_decoded(encoding: str) -> None:
    content = (
        b"\xfe\xff" + TEXT.encode("utf-16-be") if "mark" in encoding else TEXT.encode(encoding)
    )
    assert "".join(read_text(io.BytesIO(content)).pieces) == TEXT


def test_bytes_of_no_encoding_are_replaced() -> None:
    assert "".join(read_text(io.BytesIO(b"a\xff\xff\xffb")).pieces).startswith("a\ufffd")


def test_line_ends_are_unified_across_chunks() -> None:
    content = b"x" * ((1 << 20) - 1) + b"\r\n" + b"y\rz\r"
    assert "".join(read_text(io.BytesIO(content)).pieces) == "x" * ((1 << 20) - 1) + "\ny\rz\r"

"""Text files, decoded in pieces."""

import io

import pytest

from internal.documents.plain_text import read_text

TEXT = "名称,数量\n苹果,3\n"


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "gb18030"])
def test_text_is_decoded(codec: str) -> None:
    assert "".join(read_text(io.BytesIO(TEXT.encode(codec)), codec).pieces) == TEXT


def test_bytes_that_are_not_valid_are_replaced() -> None:
    pieces = read_text(io.BytesIO(b"a\xff\xff\xffb"), "utf-8").pieces
    assert "".join(pieces).startswith("a\ufffd")


def test_line_ends_are_unified_across_chunks() -> None:
    content = b"x" * ((1 << 20) - 1) + b"\r\n" + b"y\rz\r"
    pieces = read_text(io.BytesIO(content), "utf-8").pieces
    assert "".join(pieces) == "x" * ((1 << 20) - 1) + "\ny\rz\r"


def test_runs_of_nul_bytes_are_counted_also_over_chunks() -> None:
    content = b"a\0b\n" + bytes(3_000_000) + b"c\r\nd\0\0"
    text = "".join(read_text(io.BytesIO(content), "utf-8").pieces)
    assert text == "a[1 NUL byte]b\n[3,000,000 NUL bytes]c\nd[2 NUL bytes]"

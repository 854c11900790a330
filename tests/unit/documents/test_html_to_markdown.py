"""HTML to Markdown."""

import io

import pytest

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.html_to_markdown import (
    MAX_FILE_BYTES,
    convert,
    read_html,
    to_markdown,
    to_plain_text,
)


def test_invisible_elements_are_dropped() -> None:
    assert to_markdown(b"<title>T</title><h1>T</h1><p>a<svg>b</svg><template>c", None) == "# T\n\na"
    assert to_markdown("<p>你好".encode("gb18030"), "gb18030") == "你好"
    assert to_plain_text(b"<p>a<b>b</b> c", None) == "a\nb\nc"


@pytest.mark.parametrize("depth", [1, 3_000])
def test_pages_of_any_nesting_depth_are_converted(depth: int) -> None:
    assert convert(b"<div>" * depth + "<b>ü</b>".encode(), "utf-8").strip("*\n") == "ü"


def test_a_file_is_read_in_its_encoding_unless_it_is_too_large() -> None:
    content = "<p>你好".encode("gb18030")
    assert list(read_html(io.BytesIO(content)).pieces) == ["你好"]
    with pytest.raises(DocumentUnreadable, match="larger than 3 MB: read its source"):
        read_html(io.BytesIO(content + b" " * MAX_FILE_BYTES))

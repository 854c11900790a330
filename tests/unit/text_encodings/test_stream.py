"""Decoding of output in chunks."""

import pytest

from internal.text_encodings.stream import StreamDecoder, decode_escaped

TEXT = "目录: 没有那个文件或目录\n"


@pytest.mark.parametrize("codec", ["utf-8", "gb18030"])
@pytest.mark.parametrize("size", [1, 5, 100])  # the first four bytes are valid UTF-8
def test_output_is_decoded_in_the_encoding_that_shows(codec: str, size: int) -> None:
    content = (TEXT * 3).encode(codec)
    decoder = StreamDecoder(TEXT.encode(codec))
    chunks = [content[at : at + size] for at in range(0, len(content), size)]
    text = "".join(map(decoder.decode, chunks)) + decoder.decode(b"", final=True)
    assert text == TEXT * 3
    assert decoder.encoding.is_utf8 == (codec == "utf-8")


def test_the_beginning_of_a_character_is_pending() -> None:
    decoder = StreamDecoder()
    assert decoder.decode("a目".encode()[:-1]) == "a"
    assert decoder.pending == 2
    assert decoder.decode(b"", final=True) == "\ufffd"


def test_escaped_bytes_of_all_parts_decide_together() -> None:
    parts = TEXT.encode("gb18030").decode("utf-8", "surrogateescape")
    assert decode_escaped(parts, "end")[0] == [TEXT, "end"]
    assert decode_escaped("a\udcff", is_binary=True)[0] == ["a\ufffd"]

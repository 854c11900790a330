"""Messages of Outlook."""

import io
import struct

from internal.documents.outlook import read_msg
from tests.support import documents

TICKS = 134_073_504_000_000_000  # 2025-11-11 16:00 in steps of 100 ns from 1601 on


def properties(**values: int) -> bytes:
    """Return the properties of a message: its tags and their eight bytes."""
    entries = b"".join(
        struct.pack("<HHIQ", 0x40, int(tag.removeprefix("t"), 16), 6, value)
        for tag, value in values.items()
    )
    return bytes(32) + entries


def text_of(streams: dict[str, bytes | str]) -> str:
    return "".join(read_msg(io.BytesIO(documents.compound_file(streams))).pieces)


def test_headers_and_text_are_read() -> None:
    streams: dict[str, bytes | str] = {
        "__properties_version1.0": properties(t0039=TICKS),
        "__substg1.0_0037001F": "报价",
        "__substg1.0_0C1A001F": "Mia Example",
        "__substg1.0_5D01001F": "mia@example.com",
        "__substg1.0_0E04001F": "Bob",
        "__substg1.0_1000001F": "Hello\r\n\r\nBob",
    }
    assert text_of(streams) == (
        "From: Mia Example <mia@example.com>\nTo: Bob\nDate: 2025-11-11 16:00:00 +0000\n"
        "Subject: 报价\n\nHello\n\nBob\n\n"
    )


def test_a_web_page_is_the_text_where_there_is_no_other() -> None:
    streams: dict[str, bytes | str] = {
        "__properties_version1.0": properties(t3FFD=936),
        "__substg1.0_0037001E": "报价".encode("gbk"),
        "__substg1.0_10130102": b"<p>Hello <b>Bob</b></p>",
    }
    assert text_of(streams) == "Subject: 报价\n\nHello **Bob**\n\n"

"""Printed output for people."""

from internal.tools.commands.printed_text import find_address, printed_text


def test_people_read_what_a_terminal_shows() -> None:
    assert printed_text(b"\r10 %\r\x1b[32m100 %\x1b[0m\r\n") == "100 %\n"
    assert printed_text("没有那个文件或目录\n".encode("gb18030")) == "没有那个文件或目录\n"


def test_an_address_is_found_behind_colours() -> None:
    assert (
        find_address(b"\x1b[1mLocal:\x1b[0m http://localhost:5173/\n") == "http://localhost:5173/"
    )

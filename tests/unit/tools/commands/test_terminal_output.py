"""The output of commands as models read it."""

import pytest

from internal.tools.commands.terminal_output import TerminalOutput


def collected(output: bytes, size: int, limit: int = 100) -> str:
    buffer = TerminalOutput(limit)
    for at in range(0, len(output), size):
        buffer.write(output[at : at + size])
    return buffer.text()


@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_only_the_last_frame_of_a_progress_bar_is_kept(size: int) -> None:
    frames = "".join(f"\rReceiving objects: {number} of 3000" for number in range(3_001))
    output = f"first\r\n{frames}\n\x1b[32mdone\x1b[0m\n".encode()
    assert collected(output, size) == "first\nReceiving objects: 3000 of 3000\ndone\n"


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_output_that_is_not_utf8_is_read_in_its_likeliest_encoding(size: int) -> None:
    output = "目录: 没有那个文件或目录\n错误: 系统找不到指定的路径。\n"
    first, _, text = collected(output.encode("gb18030"), size).partition("\n")
    assert first.startswith("[Encoding: GB18030, which is a guess")
    assert text == output


def test_single_damaged_bytes_are_replaced() -> None:
    assert collected("服务启动\xff完成".encode().replace(b"\xc3\xbf", b"\xff"), 100) == (
        "服务启动\ufffd完成"
    )


def test_an_incomplete_character_at_the_end_is_replaced() -> None:
    assert collected(b"ab\xe4\xbd", 1) == "ab\ufffd"


def test_the_middle_of_long_output_is_left_out_and_the_text_can_be_read_again() -> None:
    buffer = TerminalOutput(10)
    buffer.write(b"0123456789" * 3)
    assert buffer.text() == buffer.text() == "01234\n… 20 characters left out …\n56789"


def test_people_get_the_output_as_it_comes() -> None:
    buffer = TerminalOutput()
    assert buffer.write(b"\r1 %") + buffer.write(b"\r2 %\x1b[m") == "\r1 %\r2 %\x1b[m"
    assert TerminalOutput().write("Größe Müller groß".encode("cp1252")) == "Größe Müller groß"

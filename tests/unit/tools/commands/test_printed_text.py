"""What commands printed, as people read it."""

import pytest

from internal.agent.domain.secrets import MASK, register_secret
from internal.tools.commands.printed_text import find_address, printed_text


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (b"\x1b[31mred\x1b[0m \x1b]0;title\x07done\n", "red done\n"),
        (b"10%\r50%\r100%\nend\r\n", "100%\nend\n"),
        ("结果\n".encode() + b"\xff", "结果\n\ufffd"),
        (b"", ""),
    ],
)
def test_control_sequences_and_rewritten_lines_are_left_out(output: bytes, text: str) -> None:
    assert printed_text(output) == text


def test_secrets_are_masked() -> None:
    register_secret("key-4711-that-nobody-reads")
    assert printed_text(b"key: key-4711-that-nobody-reads\n") == f"key: {MASK}\n"


@pytest.mark.parametrize(
    ("output", "address"),
    [
        (b"Serving on \x1b[1mhttp://127.0.0.1:8000/\x1b[0m ...", "http://127.0.0.1:8000/"),
        (b"see https://localhost:5173/app?x=1.", "https://localhost:5173/app?x=1"),
        (b"http://[::1]:3000 and http://0.0.0.0:9", "http://[::1]:3000"),
        (b"http://example.com http://127.0.0.1.evil.example", "http://127.0.0.1.evil.example"),
        (b"nothing", ""),
    ],
)
def test_the_first_address_of_this_machine_is_found(output: bytes, address: str) -> None:
    assert find_address(output) == address

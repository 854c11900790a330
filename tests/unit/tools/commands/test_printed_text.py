"""What a command printed, as text for people."""

import pytest

from internal.agent.domain.secrets import register_secret
from internal.tools.commands.printed_text import find_address, printed_text


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (b"\x1b[1;32mdone\x1b[0m\n", "done\n"),
        (b"\x1b]0;title\x07built\r\n", "built\n"),
        (b"10 %\r50 %\r100 %\nnext\n", "100 %\nnext\n"),
        (b"half \xe4\xb8", "half \N{REPLACEMENT CHARACTER}"),
    ],
)
def test_controls_and_rewritten_lines_are_left_out(output: bytes, text: str) -> None:
    assert printed_text(output) == text


def test_secrets_are_masked() -> None:
    register_secret("Canary-0f-printed-text")
    assert printed_text(b"key=Canary-0f-printed-text\n") == "key=•••\n"


@pytest.mark.parametrize(
    ("output", "address"),
    [
        (b"ready at http://localhost:5173/.\n", "http://localhost:5173/"),
        (
            b"\x1b[36mhttp://127.0.0.1:\x1b[1m8000\x1b[22m/docs\x1b[39m",
            "http://127.0.0.1:8000/docs",
        ),
        (b"on https://[::1]:8443", "https://[::1]:8443"),
        (b"see https://docs.example/ and http://192.168.0.7:3000/", ""),
    ],
)
def test_the_first_address_on_this_machine_is_found(output: bytes, address: str) -> None:
    assert find_address(output) == address

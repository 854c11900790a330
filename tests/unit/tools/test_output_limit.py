"""Limits for long output."""

import pytest

from internal.tools.output_limit import OutputBuffer


@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 25, 1000])
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_omitted_characters_are_counted(length: int, step: int) -> None:
    whole = "".join(chr(0x4E00 + number) for number in range(length))
    encoded = whole.encode()
    clip = OutputBuffer(10)
    for start in range(0, len(encoded), step):
        clip.write(encoded[start : start + step])
    if length <= 10:
        assert clip.text() == whole
    else:
        middle = f"\n… {length - 10:,} characters left out …\n"
        assert clip.text() == whole[:5] + middle + whole[-5:]


def test_an_incomplete_character_at_the_end_is_replaced() -> None:
    clip = OutputBuffer(10)
    clip.write(b"ab\xe4\xbd")
    assert clip.text() == "ab\ufffd"

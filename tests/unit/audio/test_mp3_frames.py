"""The headers of MP3 frames."""

import pytest

from internal.audio.mp3_frames import Frame, parse_frame


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"\xff\xfb\x90\x00", Frame(417, 1_152, 44_100, 128_000)),
        (b"\xff\xfb\x92\x00", Frame(418, 1_152, 44_100, 128_000)),
        (b"\xff\xf3\x40\x00", Frame(104, 576, 22_050, 32_000)),
        (b"\xff\xe3\x18\x00", Frame(72, 576, 8_000, 8_000)),
    ],
)
def test_a_frame(header: bytes, expected: Frame) -> None:
    assert parse_frame(header) == expected


@pytest.mark.parametrize(
    "header",
    [
        *(b"", b"\xff\xfb\x90", b"\xff\xfe\x90\x00", b"\xff\xff\xff\xff", b"\xff\xfb\x00\x00"),
        *(b"\xff\xfb\xf0\x00", b"\xff\xfb\x9c\x00", b"\xff\xeb\x90\x00", b"\xfe\xfb\x90\x00"),
    ],
)
def test_no_frame(header: bytes) -> None:
    assert parse_frame(header) is None

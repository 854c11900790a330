"""Recognition of recordings."""

import tempfile

import pytest

from internal.agent.ports.audio import Recording
from internal.audio.recordings import inspect_recording
from tests.support import recordings

THEORA = recordings.ogg_page([b"\x80theora" + bytes(40)], 0, 0)
MP4 = b"\0\0\0\x18ftypmp42\0\0\0\0"


def inspect(content: bytes, media_type: str = "application/octet-stream") -> Recording | None:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        return inspect_recording(file.fileno(), media_type)


@pytest.mark.parametrize(
    ("content", "media_type", "expected"),
    [
        (recordings.ogg_opus(5.0), "", Recording("audio/ogg", "ogg", 5.0)),
        (recordings.ogg_opus(5.0), "image/png", Recording("audio/ogg", "ogg", 5.0)),
        (recordings.wav(2.0), "", Recording("audio/wav", "wav", 2.0)),
        (b"fLaC\0\0\0\x22" + bytes(40), "", Recording("audio/flac", "flac")),
        (b"\0\0\0\x18ftypM4A \0\0", "", Recording("audio/mp4", "m4a")),
        (b"#!AMR\n" + bytes(9), "", Recording("audio/amr", "amr")),
        (MP4, "audio/x-m4a", Recording("audio/mp4", "m4a")),
        (b"\x1a\x45\xdf\xa3" + bytes(9), "audio/webm;codecs=opus", Recording("audio/webm", "webm")),
        (bytes(9), "audio/x-caf", Recording("audio/x-caf", "caf")),
        (bytes(9), "audio/../../x", Recording("audio/../../x", "bin")),
        (b"OggS", "audio/ogg", None),
        (THEORA, "audio/ogg", None),
        (MP4, "video/mp4", None),
        (b"", "", None),
        (bytes(100), "application/pdf", None),
        (b"ID3 is a standard for tags.", "text/plain", None),
        (recordings.MP3_FRAME[:100], "", None),
    ],
)
def test_a_recording_is_recognised(
    content: bytes, media_type: str, expected: Recording | None
) -> None:
    assert inspect(content, media_type) == expected


@pytest.mark.parametrize("tag", [0, 20])
def test_an_mp3_is_recognised_with_and_without_a_tag(tag: int) -> None:
    found = inspect(recordings.mp3(10, tag=tag))
    assert found is not None
    assert found.media_type == "audio/mpeg"
    assert found.seconds == pytest.approx(0.26, rel=0.02)

"""The length of recordings, of damaged and hostile ones as well."""

import random
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from internal.audio.durations import mp3_seconds, ogg_seconds, wav_seconds
from tests.support import recordings

Measure = Callable[[int, int], float | None]


def measure(function: Measure, content: bytes) -> float | None:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        return function(file.fileno(), len(content))


@pytest.mark.parametrize("seconds", [0.02, 1.0, 5.0, 61.5])
def test_opus_in_ogg(seconds: float) -> None:
    assert measure(ogg_seconds, recordings.ogg_opus(seconds)) == pytest.approx(seconds)


def test_a_sequence_of_pages_that_the_tail_does_not_reach_back_to() -> None:
    big = recordings.ogg_opus(2.0, comment=b"x" * 50_000) + recordings.ogg_page(
        [b"y" * 60_000], 312 + 3 * 48_000, 9
    )
    assert measure(ogg_seconds, big) == pytest.approx(3.0)


def test_vorbis_in_ogg() -> None:
    head = b"\x01vorbis" + struct.pack("<IBIIII", 0, 1, 44_100, 0, 64_000, 0) + b"\xb8\x01"
    pages = recordings.ogg_page([head], 0, 0) + recordings.ogg_page([b"x" * 50], 88_200, 1)
    assert measure(ogg_seconds, pages) == 2.0


@pytest.mark.parametrize("rate", [8_000, 44_100])
def test_wav(rate: int) -> None:
    assert measure(wav_seconds, recordings.wav(2.5, rate)) == 2.5


def test_a_streamed_wav_has_the_length_of_the_file() -> None:
    content = recordings.wav(2.0)
    endless = content[:40] + b"\xff\xff\xff\xff" + content[44:]
    assert measure(wav_seconds, endless) == 2.0


@pytest.mark.parametrize("tag", [0, 3_000, 100_000])
@pytest.mark.parametrize("counted", [False, True])
def test_mp3(tag: int, counted: bool) -> None:
    content = recordings.mp3(100, counted=counted, tag=tag)
    assert measure(mp3_seconds, content) == pytest.approx(100 * 1_152 / 44_100, rel=0.01)


HOSTILE = {
    "empty": b"",
    "signature": b"OggS",
    "endless pages": b"OggS\0\x02" + b"\xff" * 300_000,
    "repeated signature": b"OggS" * 100_000,
    "negative position": recordings.ogg_opus(1.0) + recordings.ogg_page([b"x"], -1, 9),
    "huge position": recordings.ogg_opus(1.0) + recordings.ogg_page([b"x"], 2**62, 9),
    "rate of zero": recordings.ogg_page([b"\x01vorbis" + bytes(30)], 0, 0)
    + recordings.ogg_page([b"x"], 48_000, 1),
    "riff": b"RIFF\xff\xff\xff\xffWAVE",
    "chunks without length": b"RIFF\0\0\0\0WAVE" + b"junk\0\0\0\0" * 100_000,
    "bytes of zero": b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0" + bytes(16) + b"data\xff\xff\xff\xff",
    "tag": b"ID3\x04\0\0\x7f\x7f\x7f\x7f",
    "mp3 without frames": b"\xff" * 10_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("function", [ogg_seconds, wav_seconds, mp3_seconds])
def test_a_hostile_file_has_an_unknown_or_a_possible_length(name: str, function: Measure) -> None:
    seconds = measure(function, HOSTILE[name])
    possible = {"negative position": 1.0}.get(name) if function is ogg_seconds else None
    assert seconds == possible


@pytest.mark.parametrize("function", [ogg_seconds, wav_seconds, mp3_seconds])
def test_a_damaged_file_raises_nothing(function: Measure) -> None:
    chance = random.Random(1)  # noqa: S311 - repeatable damage
    contents: dict[Measure, bytes] = {
        ogg_seconds: recordings.ogg_opus(2.0),
        wav_seconds: recordings.wav(0.1),
        mp3_seconds: recordings.mp3(5, counted=True, tag=50),
    }
    whole = contents[function]
    for _ in range(300):
        damaged = bytearray(whole[: chance.randrange(len(whole) + 1)])
        for _ in range(min(len(damaged), 8)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        seconds = measure(function, bytes(damaged))
        assert seconds is None or 0 < seconds <= 7 * 86_400


def test_a_file_is_read_in_part(tmp_path: Path) -> None:
    with (tmp_path / "large.ogg").open("w+b") as file:
        file.write(recordings.ogg_opus(1.0))
        file.truncate(20 * 2**30)  # would take minutes and all memory as a whole
        assert ogg_seconds(file.fileno(), 20 * 2**30) is None

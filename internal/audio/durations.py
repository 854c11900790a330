"""The length of recordings, from a few parts of the file and without decoding it.

Damaged and hostile files are not trusted: every function reads a bounded number of bytes and
returns None for impossible values.
"""

import os
import struct
from typing import NamedTuple

from internal.audio.mp3_frames import Frame, parse_frame

MAX_SECONDS = 7 * 86_400.0
"""A longer recording is taken for a damaged one."""
_OGG_HEAD_BYTES = 4_096
_OGG_TAIL_BYTES = 2 * 65_307  # two of the largest pages
_OGG_PAGE = struct.Struct("<4sBBqI")
_OPUS_RATE = 48_000  # of granule positions, whatever the rate of the input (RFC 7845, section 4)
_MAX_CHUNKS = 64
_MP3_HEAD_BYTES = 4_096


def ogg_seconds(descriptor: int, size: int) -> float | None:
    """Return the length of an Ogg file with Opus or Vorbis: the position of its last page."""
    head = os.pread(descriptor, _OGG_HEAD_BYTES, 0)
    if len(head) < _OGG_PAGE.size:
        return None
    serial, codec = _OGG_PAGE.unpack_from(head)[4], _ogg_codec(head)
    if codec is None:
        return None
    tail = os.pread(descriptor, _OGG_TAIL_BYTES, max(0, size - _OGG_TAIL_BYTES))
    start = len(tail)
    while (start := tail.rfind(b"OggS", 0, start)) >= 0:
        if len(tail) - start < _OGG_PAGE.size:
            continue
        _, version, _, granule, page_serial = _OGG_PAGE.unpack_from(tail, start)
        if version == 0 and page_serial == serial and granule > 0:
            return _plausible((granule - codec.skipped) / codec.rate)
    return None


class _OggCodec(NamedTuple):
    """The meaning of a granule position: samples at a rate, after some that are not played."""

    rate: int
    skipped: int = 0


def _ogg_codec(head: bytes) -> _OggCodec | None:
    if (start := head.find(b"OpusHead")) >= 0 and len(head) >= start + 12:
        return _OggCodec(_OPUS_RATE, int.from_bytes(head[start + 10 : start + 12], "little"))
    if (start := head.find(b"\x01vorbis")) >= 0 and len(head) >= start + 16:
        rate = int.from_bytes(head[start + 12 : start + 16], "little")
        return _OggCodec(rate) if rate else None
    return None


def wav_seconds(descriptor: int, size: int) -> float | None:
    """Return the length of a WAV file in seconds, from its bytes of samples and its byte rate."""
    rate, offset = 0, 12
    for _ in range(_MAX_CHUNKS):
        header = os.pread(descriptor, 8, offset)
        if len(header) < 8:  # noqa: PLR2004 - name and length of a chunk
            return None
        name, length = header[:4], int.from_bytes(header[4:], "little")
        offset += 8
        if name == b"fmt ":
            rate = int.from_bytes(os.pread(descriptor, 4, offset + 8), "little")
        elif name == b"data":
            length = min(length, size - offset)  # one that was streamed does not know its length
            return _plausible(length / rate) if rate else None
        offset += length + length % 2
    return None


def mp3_seconds(descriptor: int, size: int) -> float | None:
    """Return the length of an MP3 file: the frames that its first one counts, or by its bit rate.

    A file of variable bit rate without a count is estimated wrongly.
    """
    offset = _after_tag(os.pread(descriptor, 10, 0))
    head = os.pread(descriptor, _MP3_HEAD_BYTES, offset)
    found = _first_frame(head)
    if found is None:
        return None
    start, frame = found
    first = head[start : start + frame.size]
    for mark in (b"Xing", b"Info"):
        at = first.find(mark)
        if at >= 0 and first[at + 7 : at + 8] and first[at + 7] & 1:
            count = int.from_bytes(first[at + 8 : at + 12], "big")
            return _plausible(count * frame.samples / frame.rate)
    return _plausible((size - offset - start) * 8 / frame.bits_per_second)


def _first_frame(head: bytes) -> tuple[int, Frame] | None:
    start = head.find(b"\xff")
    while start >= 0:
        if (frame := parse_frame(head[start : start + 4])) is not None:
            return start, frame
        start = head.find(b"\xff", start + 1)
    return None


def _after_tag(head: bytes) -> int:
    """Return where the sound begins in a file that may start with an ID3v2 tag."""
    if not head.startswith(b"ID3") or len(head) < 10:  # noqa: PLR2004 - the header of a tag
        return 0
    length = 0
    for byte in head[6:10]:
        length = length << 7 | byte & 0x7F
    return 10 + length


def _plausible(seconds: float) -> float | None:
    return seconds if 0 < seconds <= MAX_SECONDS else None

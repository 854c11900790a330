"""Recordings of a given length, with silent frames: Ogg Opus as Lark records it, WAV and MP3."""

import io
import struct
import wave
from collections.abc import Iterable

_SILENT_OPUS = b"\xf8\xff\xfe"  # 20 ms
_PRE_SKIP = 312
_RATE = 48_000
_FRAME = 960


def ogg_opus(seconds: float = 5.0, *, comment: bytes = b"") -> bytes:
    """Return an Ogg Opus file (RFC 7845), a second of sound in each page."""
    head = b"OpusHead" + struct.pack("<BBHIhB", 1, 1, _PRE_SKIP, 16_000, 0, 0)
    tags = b"OpusTags" + struct.pack("<I", 4) + b"test" + struct.pack("<I", 0) + comment
    pages = [ogg_page([head], 0, 0, flags=2), ogg_page([tags], 0, 1)]
    left, granule, number = round(seconds * _RATE), _PRE_SKIP, 2
    while left > 0:
        samples = min(left, _RATE)
        left -= samples
        granule += samples
        packets = [_SILENT_OPUS] * -(-samples // _FRAME)
        pages.append(ogg_page(packets, granule, number, flags=0 if left else 4))
        number += 1
    return b"".join(pages)


def ogg_page(
    packets: Iterable[bytes], granule: int, number: int, *, flags: int = 0, serial: int = 7
) -> bytes:
    """Return an Ogg page with its checksum (RFC 3533)."""
    body, lacing = b"", b""
    for packet in packets:
        body += packet
        lacing += b"\xff" * (len(packet) // 255) + bytes([len(packet) % 255])
    header = struct.pack("<4sBBqIIIB", b"OggS", 0, flags, granule, serial, number, 0, len(lacing))
    page = header + lacing + body
    return page[:22] + struct.pack("<I", _checksum(page)) + page[26:]


def _checksum(page: bytes) -> int:
    value = 0
    for byte in page:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ 0x04C11DB7 if value & 0x80000000 else value << 1) & 0xFFFFFFFF
    return value


def wav(seconds: float = 2.0, rate: int = 16_000) -> bytes:
    """Return a WAV file with one channel of 16 bits."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(bytes(2 * round(seconds * rate)))
    return file.getvalue()


MP3_FRAME = b"\xff\xfb\x90\xc4".ljust(417, b"\0")
"""A silent frame of MPEG 1, layer III: 128 kbit/s, 44,100 Hz, 1,152 samples."""


def mp3(frames: int = 100, *, counted: bool = False, tag: int = 0) -> bytes:
    """Return an MP3 file, with an ID3 tag of `tag` bytes and a frame that counts the others."""
    start = b""
    if tag:
        sizes = bytes(tag >> shift & 0x7F for shift in (21, 14, 7, 0))
        start = b"ID3\x04\0\0" + sizes + bytes(tag)
    if counted:
        start += (MP3_FRAME[:36] + b"Xing" + struct.pack(">II", 1, frames)).ljust(417, b"\0")
    return start + MP3_FRAME * frames

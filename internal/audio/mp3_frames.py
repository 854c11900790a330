"""The headers of MP3 frames (ISO/IEC 11172-3 and 13818-3, layer III)."""

from typing import NamedTuple

_MPEG_1, _MPEG_2, _MPEG_2_5 = 3, 2, 0
_LAYER_3 = 1
_RATES = {
    _MPEG_1: (44_100, 48_000, 32_000),
    _MPEG_2: (22_050, 24_000, 16_000),
    _MPEG_2_5: (11_025, 12_000, 8_000),
}
_KILOBITS_1 = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_KILOBITS_2 = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_HEADER_BYTES = 4
_SYNC = 0xFFE0


class Frame(NamedTuple):
    """A frame: its size in bytes, and the samples, at a rate, that it contains."""

    size: int
    samples: int
    rate: int
    bits_per_second: int


def parse_frame(header: bytes) -> Frame | None:
    """Return the frame that begins with these four bytes, None if none does."""
    start = int.from_bytes(header[:2], "big")
    if len(header) < _HEADER_BYTES or start & _SYNC != _SYNC:
        return None
    version, layer = header[1] >> 3 & 3, header[1] >> 1 & 3
    bit_rate, rate = header[2] >> 4, header[2] >> 2 & 3
    if layer != _LAYER_3 or version not in _RATES or not 0 < bit_rate <= len(_KILOBITS_1):
        return None
    if rate >= len(_RATES[version]):
        return None
    is_first = version == _MPEG_1
    bits = (_KILOBITS_1 if is_first else _KILOBITS_2)[bit_rate - 1] * 1_000
    samples, hertz = 1_152 if is_first else 576, _RATES[version][rate]
    size = samples // 8 * bits // hertz + (header[2] >> 1 & 1)
    return Frame(size, samples, hertz, bits)

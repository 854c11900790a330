"""The binary frame of the long connection: `pbbp2.Frame`, a proto2 message.

The fields follow the descriptor in lark-oapi 1.7.5. Written by hand: a protobuf library would be a
dependency of several megabytes for one message.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

CONTROL, DATA = 0, 1
"""Values of `method`."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}
_MAX_VARINT_BYTES = 10
_REQUIRED = (1, 2, 3, 4)
_TEXTS = {6: "payload_encoding", 7: "payload_type", 9: "log_id_new"}


class FrameError(ValueError):
    """The bytes are not a frame."""


@dataclass(slots=True)
class WireFrame:
    """A frame. Missing texts are empty; the order of headers is kept."""

    seq_id: int
    log_id: int
    service: int
    method: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    payload: bytes = b""
    payload_encoding: str = ""
    payload_type: str = ""
    log_id_new: str = ""

    def header(self, key: str) -> str:
        """Return the first header with this name, or ""."""
        return next((value for name, value in self.headers if name == key), "")

    def encode(self) -> bytes:
        """Return the encoded frame, fields in numeric order."""
        numbers = (self.seq_id, self.log_id, self.service, self.method)
        parts = [_tag(at, _VARINT) + _varint(number) for at, number in enumerate(numbers, 1)]
        for key, value in self.headers:
            parts.append(_sized(5, _sized(1, key.encode()) + _sized(2, value.encode())))
        rest = {at: getattr(self, name).encode() for at, name in _TEXTS.items()} | {8: self.payload}
        parts += [_sized(at, rest[at]) for at in sorted(rest) if rest[at]]
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> "WireFrame":
        """Read a frame; unknown fields are skipped, as protobuf requires.

        Raises:
            FrameError: It is truncated, lacks a required field, or a field has the wrong type.
        """
        numbers: dict[int, int] = {}
        texts: dict[str, str] = {}
        headers: list[tuple[str, str]] = []
        payload = b""
        for at, value in _fields(data):
            if at in _REQUIRED:
                numbers[at] = _number(value)
            elif at == 5:  # noqa: PLR2004 - a field number
                headers.append(_header(_raw(value)))
            elif at in _TEXTS:
                texts[_TEXTS[at]] = _text(value)
            elif at == 8:  # noqa: PLR2004 - a field number
                payload = _raw(value)
        if missing := [at for at in _REQUIRED if at not in numbers]:
            raise FrameError(f"missing required fields: {missing}")
        service, method = _signed(numbers[3]), _signed(numbers[4])
        frame = cls(numbers[1], numbers[2], service, method, headers, payload)
        for name, text in texts.items():
            setattr(frame, name, text)
        return frame


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    place = 0
    while place < len(data):
        tag, place = _read_varint(data, place)
        at, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, place = _read_varint(data, place)
            yield at, value
            continue
        if kind == _BYTES:
            size, place = _read_varint(data, place)
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise FrameError(f"unknown wire type {kind}")
        if at == 0 or place + size > len(data):
            raise FrameError("truncated")
        yield at, data[place : place + size]
        place += size


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(_MAX_VARINT_BYTES):
        if place + shift >= len(data):
            raise FrameError("truncated")
        byte = data[place + shift]
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:  # noqa: PLR2004 - the last byte has its high bit clear
            return value & (1 << 64) - 1, place + shift + 1
    raise FrameError("varint of more than 64 bits")


def _header(data: bytes) -> tuple[str, str]:
    found = dict(_fields(data))
    if not {1, 2} <= found.keys():
        raise FrameError("header without key or value")
    return _text(found[1]), _text(found[2])


def _number(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise FrameError("expected a number, got bytes")
    return value


def _raw(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise FrameError("expected bytes, got a number")
    return value


def _text(value: int | bytes) -> str:
    try:
        return _raw(value).decode()
    except UnicodeDecodeError as error:
        raise FrameError("text is not UTF-8") from error


def _signed(value: int) -> int:
    """Read an int32 as protobuf does: only the low 32 bits count."""
    low = value & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


def _tag(at: int, kind: int) -> bytes:
    return _varint(at << 3 | kind)


def _sized(at: int, data: bytes) -> bytes:
    return _tag(at, _BYTES) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # protobuf encodes negative numbers in 64 bits
    data = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits per byte
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)

"""The frame codec, compared with the SDK's protobuf and fuzzed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.simulators.lark.websocket.frames import FrameError, WireFrame
from tests.support.lark_sdk import Sdk

UNSIGNED = st.integers(0, 2**64 - 1)
SIGNED = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
FRAMES = st.builds(
    WireFrame,
    seq_id=UNSIGNED,
    log_id=UNSIGNED,
    service=SIGNED,
    method=SIGNED,
    headers=st.lists(st.tuples(TEXT, TEXT), max_size=8),
    payload=st.binary(max_size=300),
    payload_encoding=TEXT,
    payload_type=TEXT,
    log_id_new=TEXT,
)


def theirs(frame: WireFrame, pb: Any) -> Any:
    made = pb.Frame()
    made.SeqID, made.LogID = frame.seq_id, frame.log_id
    made.service, made.method = frame.service, frame.method
    for key, value in frame.headers:
        header = made.headers.add()
        header.key, header.value = key, value
    made.payload, made.LogIDNew = frame.payload, frame.log_id_new
    made.payload_encoding, made.payload_type = frame.payload_encoding, frame.payload_type
    return made


@given(frame=FRAMES)
@pytest.mark.slow
def test_frames_are_compatible_with_the_sdk(sdk: Sdk, frame: WireFrame) -> None:
    read = sdk.pb.Frame()
    read.ParseFromString(frame.encode())
    made = theirs(frame, sdk.pb)
    for name in ("payload", "LogIDNew", "payload_encoding", "payload_type"):
        if not getattr(made, name):
            made.ClearField(name)  # ours does not write what is empty
    assert read == made
    assert frame.encode() == made.SerializeToString()
    assert WireFrame.decode(theirs(frame, sdk.pb).SerializeToString()) == frame


@given(frame=FRAMES, cut=st.integers(0, 400))
def test_a_truncated_frame_is_rejected_or_a_valid_prefix(frame: WireFrame, cut: int) -> None:
    try:
        read = WireFrame.decode(frame.encode()[:cut])
    except FrameError:
        return
    assert read.seq_id == frame.seq_id
    assert read.headers == frame.headers[: len(read.headers)]


@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_rejected(data: bytes) -> None:
    try:
        frame = WireFrame.decode(data)
    except FrameError:
        return
    assert WireFrame.decode(frame.encode()) == frame


@given(frame=FRAMES)
def test_unknown_fields_are_skipped(frame: WireFrame) -> None:
    unknown = b"\x78\x01" + b"\x7a\x02hi" + b"\x7d\x01\x02\x03\x04" + b"\x79" + bytes(8)
    assert WireFrame.decode(unknown + frame.encode() + unknown) == frame


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "missing"),
        (b"\x08\x01\x10\x01\x18\x01", r"fields: \[4\]"),
        (b"\x0a\x01a\x10\x01\x18\x01\x20\x01", "got bytes"),
        (b"\x08\x01\x10\x01\x18\x01\x20\x01\x40\x01", "got a number"),
        (b"\x08\x01\x10\x01\x18\x01\x20\x01\x32\x01\xff", "UTF-8"),
        (b"\x08\x01\x10\x01\x18\x01\x20\x01\x2a\x03\x0a\x01k", "header"),
        (b"\x08" + b"\xff" * 10, "64 bits"),
        (b"\x0b", "wire type 3"),
        (b"\x08\x01\x10\x01\x18\x01\x20\x01\x42\xff\xff\x03", "truncated"),
    ],
)
def test_invalid_frames_are_rejected_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(FrameError, match=why):
        WireFrame.decode(data)

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.simulators.lark.websocket.frames import DATA, FrameError, WireFrame

frames = st.builds(
    WireFrame,
    st.integers(0, 2**63),
    st.integers(0, 2**63),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 1),
    st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=3),
    st.binary(max_size=40),
)


@given(frame=frames)
def test_decoding_an_encoded_frame_returns_it(frame: WireFrame) -> None:
    assert WireFrame.decode(frame.encode()) == frame


def test_the_first_header_of_a_name_counts() -> None:
    frame = WireFrame(1, 2, 3, DATA, [("a", "1"), ("a", "2")])
    assert (frame.header("a"), frame.header("b")) == ("1", "")


def test_missing_required_fields_are_reported() -> None:
    with pytest.raises(FrameError, match="missing"):
        WireFrame.decode(b"\x08\x01")

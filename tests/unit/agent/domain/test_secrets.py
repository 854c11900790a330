"""Masking of secrets."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.errors import LarkspurError, ModelRejected
from internal.agent.domain.events.envelope import RunIds, encode_envelope, wrap_event
from internal.agent.domain.events.types import OutputDelta
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.secrets import (
    MASK,
    MAX_ROTATED_SECRETS,
    SecretRegistry,
    StreamMask,
    mask_secrets,
    register_secret,
)

KEY = 'sk-canary/7f"3a\\9c+Qx'


@pytest.mark.parametrize(
    "spelling",
    [
        KEY,
        quote(KEY),
        quote(KEY, safe=""),
        json.dumps(KEY)[1:-1],
        json.dumps(KEY)[1:-1].replace("/", "\\/"),
        "sk-canary/7f&quot;3a\\9c+Qx",
    ],
)
def test_every_spelling_of_a_secret_is_masked(spelling: str) -> None:
    register_secret(KEY)
    assert mask_secrets(f"a {spelling} b {spelling}") == f"a {MASK} b {MASK}"


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_secret_within_base64_is_masked(before: str, encode: type[bytes]) -> None:
    register_secret(KEY)
    encoded = base64.b64encode(f"{before}{KEY}:x".encode()).decode()
    masked = mask_secrets(encoded)
    assert MASK in masked
    assert len(masked) < len(MASK) + len(before) * 2 + 8


@pytest.mark.parametrize("value", ["", "short-1", "not-needed", "session_id"])
def test_a_short_value_or_a_word_is_not_masked(value: str) -> None:
    register_secret(value)
    assert mask_secrets(f"it is {value}") == f"it is {value}"


def test_only_the_newest_values_of_a_renewed_secret_are_masked() -> None:
    registry = SecretRegistry()
    tokens = [f"t-00000{n}-token" for n in range(MAX_ROTATED_SECRETS + 1)]
    for token in tokens:
        registry.register(token, renewed="access token")
    assert registry.mask(" ".join(tokens)).split() == [tokens[0], *[MASK] * MAX_ROTATED_SECRETS]


def test_errors_are_masked_where_they_are_made() -> None:
    register_secret(KEY)
    assert str(LarkspurError(f"bad {KEY}")) == f"bad {MASK}"
    error = ModelRejected("Rejected.", detail=KEY)
    error.detail = f"400 {KEY}"
    assert (str(error), error.detail) == ("Rejected.", f"400 {MASK}")


def test_the_values_of_a_row_are_masked_each() -> None:
    registry = SecretRegistry()
    registry.register(KEY)
    clean = ("a", 1, None, KEY[:9], KEY[9:])
    assert registry.mask_values(clean) is clean
    assert registry.mask_values((f"x{KEY}", 2, b"b", "y")) == [f"x{MASK}", 2, b"b", "y"]


def test_events_are_masked_where_they_are_encoded() -> None:
    register_secret(KEY)
    delta = OutputDelta(node_id="iter:1:say", k=1, n=1, text=f"the key is {KEY}")
    ids = RunIds(SessionId("session-1"), TaskId("task-1"), RunId("run-1"))
    encoded = encode_envelope(wrap_event(ids, delta, "2026-01-31T08:00:00.000Z", None))
    assert json.loads(encoded)["payload"]["text"] == f"the key is {MASK}"


_PIECES = st.lists(st.sampled_from(["sk", "sk-can", KEY, KEY[:9], KEY[9:], " a "]), max_size=8)


@given(_PIECES, st.data())
def test_a_stream_is_masked_however_it_is_cut(pieces: list[str], data: st.DataObject) -> None:
    register_secret(KEY)
    text, stream, shown = "".join(pieces), StreamMask(), []
    while text:
        size = data.draw(st.integers(1, len(text)))
        shown.append(stream.feed(text[:size]))
        text = text[size:]
    assert "".join([*shown, stream.flush()]) == mask_secrets("".join(pieces))

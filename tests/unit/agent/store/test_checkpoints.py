"""Encoding of Turns as checkpoints."""

import msgspec
import pytest

from internal.agent.domain.errors import StoreCorrupt
from internal.agent.domain.messages import Message, Text
from internal.agent.store.checkpoints import CheckpointEncoder, decode_checkpoint, merge_deltas
from tests.support.turn_driver import run_config, start_turn

encode = msgspec.json.Encoder(order="deterministic").encode


def test_a_turn_is_restored_from_its_deltas() -> None:
    turn, encoder = start_turn(run_config()), CheckpointEncoder()
    first = encoder.encode(turn)
    turn.messages.append(Message("assistant", (Text("One heron."),)))
    second = encoder.encode(turn)

    restored = decode_checkpoint(second.turn, [*first.messages, *second.messages])

    assert encode(restored) == encode(turn)
    assert (first.offset, len(first.messages)) == (0, 2), "the configuration and the task"
    assert (second.offset, len(second.messages)) == (2, 1), "the new message only"


def test_an_encoder_continues_after_the_stored_rows() -> None:
    turn = start_turn(run_config())
    rows = CheckpointEncoder().encode(turn).messages
    delta = CheckpointEncoder(len(rows)).encode(turn)
    assert (delta.offset, delta.messages) == (len(rows), ())


def test_merging_deltas() -> None:
    turn, encoder = start_turn(run_config()), CheckpointEncoder()
    first = encoder.encode(turn)
    turn.messages.append(Message("assistant", (Text("One heron."),)))
    second = encoder.encode(turn)

    merged = merge_deltas([first, second])

    assert merged is not None
    assert merged.offset == 0
    assert encode(decode_checkpoint(merged.turn, list(merged.messages))) == encode(turn)
    assert merge_deltas([]) is None


@pytest.mark.parametrize("rows", [[], [b"{}"], [b"not JSON"]])
def test_a_checkpoint_that_cannot_be_decoded(rows: list[bytes]) -> None:
    turn = CheckpointEncoder().encode(start_turn(run_config())).turn
    with pytest.raises(StoreCorrupt, match="cannot be read"):
        decode_checkpoint(turn, rows)

"""Checkpoints: Turns as they are stored, with their messages apart because they only grow."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from internal.agent.domain.errors import StoreCorrupt
from internal.agent.domain.messages import Message
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.react.turn import Turn

_encode = msgspec.json.Encoder().encode
_turn = msgspec.json.Decoder(Turn)
_message = msgspec.json.Decoder(Message)
_config = msgspec.json.Decoder(RunConfig)
_EMPTY_CONFIG = _config.decode(
    b'{"run_id":"","system":"","model":"","tools":[],"policy":{},"limits":{},"gates":"off",'
    b'"workspace":""}'
)


class CheckpointDelta(NamedTuple):
    """A Turn without its messages, and the messages that the turn log does not have yet.

    `turn` and `messages` are JSON. `offset` is the number of the first of `messages`.
    """

    turn: bytes
    offset: int
    messages: tuple[bytes, ...]


class CheckpointEncoder:
    """Encodes the checkpoints of one run. The deltas must be stored in the order of encoding.

    Row 0 of the turn log is the run configuration; the messages follow.

    Args:
        stored_rows: the number of rows that the turn log has already.
    """

    def __init__(self, stored_rows: int = 0) -> None:
        self._offset = stored_rows

    def encode(self, turn: Turn) -> CheckpointDelta:
        """Encode the current state of the Turn."""
        rows = [_encode(message) for message in turn.messages[max(self._offset - 1, 0) :]]
        if self._offset == 0:
            rows.insert(0, _encode(turn.config))
        bare = msgspec.structs.replace(turn, messages=[], config=_EMPTY_CONFIG)
        delta = CheckpointDelta(_encode(bare), self._offset, tuple(rows))
        self._offset += len(rows)
        return delta


def merge_deltas(deltas: Sequence[CheckpointDelta]) -> CheckpointDelta | None:
    """Merge consecutive deltas into one: the newest Turn and all messages."""
    if not deltas:
        return None
    rows = tuple(row for delta in deltas for row in delta.messages)
    return CheckpointDelta(deltas[-1].turn, deltas[0].offset, rows)


def decode_checkpoint(turn: bytes, rows: list[bytes]) -> Turn:
    """Return the Turn of a stored checkpoint.

    Raises:
        StoreCorrupt: it cannot be decoded.
    """
    try:
        decoded = _turn.decode(turn)
        decoded.config = _config.decode(rows[0])
        decoded.messages = [_message.decode(row) for row in rows[1:]]
    except (msgspec.MsgspecError, IndexError) as error:
        raise StoreCorrupt(f"A stored checkpoint cannot be read: {error}.") from error
    return decoded

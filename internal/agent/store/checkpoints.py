"""Checkpoints: a Turn as it is stored, its messages apart because they only grow."""

from collections.abc import Sequence

import msgspec

from internal.agent.domain.errors import StoreCorrupt
from internal.agent.domain.messages import Message
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.react.turn import Turn
from internal.agent.store.runs import CheckpointDelta

_encode = msgspec.json.Encoder().encode
_turn = msgspec.json.Decoder(Turn)
_message = msgspec.json.Decoder(Message)
_terms = msgspec.json.Decoder(RunConfig)


class CheckpointEncoder:
    """Makes the points of one run. Each carries what the turn log lacks: terms, then messages."""

    def __init__(self, kept: int = 0) -> None:
        self._kept = kept

    def encode(self, turn: Turn) -> CheckpointDelta:
        """Encode the Turn as it is now. Points are to be stored in the order of their making."""
        rows = [_encode(message) for message in turn.messages[max(self._kept - 1, 0) :]]
        if self._kept == 0:
            rows.insert(0, _encode(turn.config))
        head = msgspec.structs.replace(turn, messages=[], config=_NO_TERMS)
        point = CheckpointDelta(_encode(head), self._kept, tuple(rows))
        self._kept += len(rows)
        return point


def merge_deltas(points: Sequence[CheckpointDelta]) -> CheckpointDelta | None:
    """Return points that follow one another as one: the newest head, all messages."""
    if not points:
        return None
    rows = tuple(row for point in points for row in point.messages)
    return CheckpointDelta(points[-1].head, points[0].offset, rows)


def decode_checkpoint(head: bytes, rows: list[bytes]) -> Turn:
    """Return the Turn of a stored checkpoint.

    Raises:
        StoreRefused: it cannot be read.
    """
    try:
        turn = _turn.decode(head)
        turn.config = _terms.decode(rows[0])
        turn.messages = [_message.decode(row) for row in rows[1:]]
    except (msgspec.MsgspecError, IndexError) as error:
        raise StoreCorrupt(f"A stored checkpoint cannot be read: {error}.") from error
    return turn


def _no_terms() -> RunConfig:
    return msgspec.json.decode(
        b'{"run_id":"","system":"","model":"","tools":[],"policy":{},"limits":{},"gates":"off",'
        b'"workspace":""}',
        type=RunConfig,
    )


_NO_TERMS = _no_terms()

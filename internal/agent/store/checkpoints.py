"""Checkpoints: stored Turns. Their messages are stored apart because they only grow."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from internal.agent.domain.delegation.state import SubtaskState
from internal.agent.domain.errors import StoreCorrupt
from internal.agent.domain.ids import TaskId
from internal.agent.domain.messages import Message
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.react.turn import Turn

CHECKPOINT_VERSION = 1
"""The format of stored checkpoints. Raise it with a change that earlier versions cannot read."""

_encode = msgspec.json.Encoder().encode
_turn = msgspec.json.Decoder(Turn)
_message = msgspec.json.Decoder(Message)
_config = msgspec.json.Decoder(RunConfig)
_EMPTY_CONFIG = _config.decode(
    b'{"run_id":"","system":"","model":"","tools":[],"policy":{},"limits":{},"gates":"off",'
    b'"workspace":""}'
)


class _FormerFields(msgspec.Struct):
    """Fields of the Turns of 0.1.0a1 that are states of capabilities now."""

    told_tasks: frozenset[TaskId] = frozenset()
    has_subtasks: bool = False


_former = msgspec.json.Decoder(_FormerFields)


class CheckpointDelta(NamedTuple):
    """A Turn without its messages, and the messages that the turn log does not have yet.

    `turn` and `messages` are JSON. `offset` is the number of the first of `messages`, `task_index`
    the index of the run's first message in the turn log.
    """

    turn: bytes
    offset: int
    messages: tuple[bytes, ...]
    task_index: int = 0


class StoredCheckpoint(NamedTuple):
    """A checkpoint as it was stored: the newest Turn and all rows of the turn log, as JSON."""

    version: int
    task_index: int
    turn: bytes
    rows: list[bytes]


class CheckpointEncoder:
    """Encodes the checkpoints of one run. The deltas must be stored in the order of encoding.

    Row 0 of the turn log is the run configuration; the messages after the history follow. Of the
    history only the reference is stored.

    Args:
        stored_rows: the number of rows that the turn log has already.
    """

    def __init__(self, stored_rows: int = 0) -> None:
        self._offset = stored_rows

    @property
    def has_rows(self) -> bool:
        """Whether the turn log has rows, or will have them once the encoded ones are stored."""
        return self._offset > 0

    def encode(self, turn: Turn) -> CheckpointDelta:
        """Encode the current state of the Turn."""
        first = turn.history.count + max(self._offset - 1, 0)
        rows = [_encode(message) for message in turn.messages[first:]]
        if self._offset == 0:
            rows.insert(0, _encode(turn.config))
        task_index = turn.task_index - turn.history.count
        bare = msgspec.structs.replace(
            turn, messages=[], config=_EMPTY_CONFIG, task_index=task_index
        )
        delta = CheckpointDelta(_encode(bare), self._offset, tuple(rows), task_index)
        self._offset += len(rows)
        return delta


def merge_deltas(deltas: Sequence[CheckpointDelta]) -> CheckpointDelta | None:
    """Merge consecutive deltas into one: the newest Turn and all messages."""
    if not deltas:
        return None
    rows = tuple(row for delta in deltas for row in delta.messages)
    return deltas[-1]._replace(offset=deltas[0].offset, messages=rows)


def decode_checkpoint(stored: StoredCheckpoint) -> Turn:
    """Return the Turn of a stored checkpoint without its history; see `Turn.add_history`.

    Raises:
        StoreCorrupt: it cannot be decoded, or a newer version of Larkspur wrote it.
    """
    if stored.version > CHECKPOINT_VERSION:
        raise StoreCorrupt(
            "The checkpoint of the run was written by a newer Larkspur (checkpoint version"
            f" {stored.version}, this one reads up to {CHECKPOINT_VERSION})."
        )
    try:
        decoded = _turn.decode(stored.turn)
        decoded.config = _config.decode(stored.rows[0])
        decoded.messages = [_message.decode(row) for row in stored.rows[1:]]
        former = _former.decode(stored.turn)
    except (msgspec.MsgspecError, IndexError) as error:
        raise StoreCorrupt(f"The checkpoint of the run cannot be read: {error}.") from error
    if former.told_tasks or former.has_subtasks:
        decoded.remember(SubtaskState(former.told_tasks, former.has_subtasks))
    return decoded


def readable_turn(stored: StoredCheckpoint) -> Turn | None:
    """Return a Turn with the messages of the run up to the first that cannot be read.

    Nothing else is restored: it can only be ended. None if no message can be read.
    """
    messages: list[Message] = []
    for row in stored.rows[1 + stored.task_index :]:
        try:
            messages.append(_message.decode(row))
        except msgspec.MsgspecError:
            break
    if not messages:
        return None
    calls = messages[-1].calls
    started = frozenset(call.call_id for call in calls)
    return Turn(config=_EMPTY_CONFIG, messages=messages, task_index=0, calls=calls, started=started)

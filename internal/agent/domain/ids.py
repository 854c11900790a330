"""Identifiers: a prefix for the kind, then a KSUID, so that they sort by creation time."""

import hashlib
import os
import time
from collections import deque
from itertools import product
from string import ascii_lowercase, ascii_uppercase, digits
from typing import NewType

from ksuid import Ksuid
from ksuid.ksuid import EPOCH_STAMP

SessionId = NewType("SessionId", str)
TaskId = NewType("TaskId", str)
RunId = NewType("RunId", str)
MessageId = NewType("MessageId", str)
QuestionId = NewType("QuestionId", str)
ArtifactId = NewType("ArtifactId", str)

MAX_ID_CHARS = 128
"""The longest id that a client may choose."""

_PAIRS = tuple(map("".join, product(digits + ascii_uppercase + ascii_lowercase, repeat=2)))
"""The numbers below 62 * 62 in base 62."""
_PAIR_COUNT = 14  # of a KSUID with a leading zero
_PAYLOAD_BYTES = Ksuid.PAYLOAD_LENGTH_IN_BYTES
_PAYLOADS_AT_ONCE = 64

_payloads: deque[bytes] = deque()
os.register_at_fork(after_in_child=_payloads.clear)


def new_ksuid() -> str:
    """Return a new KSUID, as `str(Ksuid())` does at ten times the cost. Any thread may call it."""
    seconds = int(time.time()) - EPOCH_STAMP
    return _base62((seconds << 8 * _PAYLOAD_BYTES) | int.from_bytes(_random_payload()))


def _random_payload() -> bytes:
    while True:
        try:
            return _payloads.pop()
        except IndexError:  # one system call for many
            block = os.urandom(_PAYLOADS_AT_ONCE * _PAYLOAD_BYTES)
            starts = range(0, len(block), _PAYLOAD_BYTES)
            _payloads.extend(block[at : at + _PAYLOAD_BYTES] for at in starts)


def _base62(number: int) -> str:
    pairs = []
    for _ in range(_PAIR_COUNT):
        number, rest = divmod(number, len(_PAIRS))
        pairs.append(_PAIRS[rest])
    return "".join(reversed(pairs))[1:]


def new_session_id() -> SessionId:
    """Return an id for a conversation, such as `session-2ABc…`."""
    return SessionId(f"session-{new_ksuid()}")


def new_task_id() -> TaskId:
    """Return an id for a task, such as `task-2ABc…`."""
    return TaskId(f"task-{new_ksuid()}")


def new_run_id() -> RunId:
    """Return an id for a run, such as `run-2ABc…`."""
    return RunId(f"run-{new_ksuid()}")


def new_message_id() -> MessageId:
    """Return an id for a message of a channel without message ids."""
    return MessageId(f"msg-{new_ksuid()}")


def new_artifact_id() -> ArtifactId:
    """Return an id for an artifact, such as `artifact-2ABc…`."""
    return ArtifactId(f"artifact-{new_ksuid()}")


def derive_id(name: str, salt: str = "") -> str:
    """Return another id of the same kind and time, always the same for one id and salt."""
    prefix, _, ksuid = name.rpartition("-")
    first = Ksuid.from_base62(ksuid)
    payload = hashlib.sha256(bytes(first) + salt.encode()).digest()[: Ksuid.PAYLOAD_LENGTH_IN_BYTES]
    return f"{prefix}-{Ksuid(first.datetime, payload)}"


def ksuid_part(run_id: RunId) -> str:
    """Return the KSUID of a run id, from which other ids of the run are derived."""
    return run_id.removeprefix("run-")


def event_id(run_id: RunId, seq: int) -> str:
    """Return the id of the durable event `seq` of a run.

    Derived from the run: a KSUID per event would cost 33 µs, and a replay gives the same id.
    """
    return f"evt-{ksuid_part(run_id)}-{seq}"


def question_id(run_id: RunId, number: int) -> QuestionId:
    """Return the id of a run's `number`-th question. A replayed Turn gives the same id."""
    return QuestionId(f"question-{ksuid_part(run_id)}-{number}")


def call_id_prefix(run_id: RunId, iteration: int) -> str:
    """Return the start of the ids of one reply's tool calls; no other run has the same.

    With the number of the call an id has at most 40 characters, as OpenAI requires.
    """
    return f"{ksuid_part(run_id)}-{iteration}"


def recovery_question_id(run_id: RunId, fence: int) -> QuestionId:
    """Return the id of the question that the start `fence` of a run asks outside its Turn."""
    return QuestionId(f"question-{ksuid_part(run_id)}-r{fence}")


def log_id(run_id: RunId) -> str:
    """Return the id of the log lines of a run."""
    return f"log-{ksuid_part(run_id)}"

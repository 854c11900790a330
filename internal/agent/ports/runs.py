"""What the agent asks of the store of runs: leases, fences, checkpoints."""

from typing import NamedTuple

from internal.agent.domain.budgets import Usage
from internal.agent.domain.tasks import Status, StopReason


class Point(NamedTuple):
    """A checkpoint: the Turn without its messages, and those that the turn log lacks.

    `kept` counts the messages before `messages`; both are JSON.
    """

    head: bytes
    kept: int
    messages: tuple[bytes, ...]


class RunEnd(NamedTuple):
    """How a run ended, as its row keeps it. `cost` in US dollars when known."""

    status: Status
    stop_reason: StopReason
    usage: Usage
    cost: float | None
    answer: str
    error: str
    ended: str

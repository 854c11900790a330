"""The queue: where a dispatcher finds its runs."""

from dataclasses import dataclass

from internal.agent.ports.clock import Clock
from internal.agent.ports.database import Database
from internal.agent.ports.stores import Stores


@dataclass(frozen=True, slots=True)
class Queue:
    """Where a dispatcher finds its runs."""

    database: Database
    stores: Stores
    clock: Clock

"""The queue: where a dispatcher finds its runs."""

from dataclasses import dataclass

from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores


@dataclass(frozen=True, slots=True)
class Queue:
    """Where a dispatcher finds its runs."""

    database: Database
    stores: Stores
    clock: Clock

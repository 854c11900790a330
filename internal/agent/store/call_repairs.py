"""Counts of repaired calls for each model, over all processes."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from internal.agent.store.database import Batch, Read, Row, Statement, Write
from internal.agent.store.encoding import storable


class CallRepairs(NamedTuple):
    """The number of repairs of one kind in the calls of a model. `last` is RFC 3339."""

    provider: str
    model: str
    kind: str
    times: int
    last: str


class CallRepairStore:
    """Repairs by provider, model and kind; see `RepairKind`."""

    def add(self, provider: str, model: str, kinds: Iterable[str], *, now: str) -> Write[None]:
        """Count the repairs of a reply."""
        rows = [
            (storable(provider), storable(model), kind, count, now)
            for kind, count in sorted(Counter(kinds).items())
        ]
        yield Batch("add_call_repairs", rows)

    def list_all(self) -> Read[list[CallRepairs]]:
        """Return all counts, in the order of their keys."""
        rows = yield Statement("call_repairs")
        return [read_call_repairs(row) for row in rows]


def read_call_repairs(row: Row) -> CallRepairs:
    """Return the count in a row of the statement `call_repairs`."""
    return CallRepairs(*row)

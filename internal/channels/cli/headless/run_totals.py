"""Usage totals of a one-shot command: its run, and the runs that report subtasks."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any


class RunTotals:
    """The newest totals of runs that no other run created, from the ends of them and of subtasks.

    A total contains all subtasks below its run, so that nothing is added up here but the runs.
    """

    def __init__(self, run_id: str) -> None:
        self._runs = {run_id}
        self._totals: dict[str, Mapping[str, Any]] = {}
        self._started: datetime | None = None
        self._ended: datetime | None = None

    def add_run(self, run_id: str) -> None:
        """Count the ends of another run."""
        self._runs.add(run_id)

    def add_end(self, event: Mapping[str, Any]) -> None:
        """Take the totals from the last event of a run or a subtask."""
        payload = event["payload"]
        self._totals |= {each["run_id"]: each for each in payload.get("above", ())}
        self._totals[event["run_id"]] = payload
        if event["run_id"] in self._runs:
            self._ended = datetime.fromisoformat(event["timestamp"])
            took = timedelta(milliseconds=payload.get("duration_ms", 0))
            self._started = self._started or self._ended - took

    def fields(self) -> dict[str, Any]:
        """Return `usage`, `cost` (US dollars) and `duration_ms`, null before the first end."""
        known = [self._totals[each] for each in self._runs if each in self._totals]
        if self._started is None or self._ended is None:
            return {"usage": None, "cost": None, "duration_ms": None}
        usage = Counter[str]()
        for each in known:
            usage.update(each.get("usage", {}))
        costs = [each["cost"] for each in known if each.get("cost") is not None]
        return {
            "usage": dict(usage),
            "cost": sum(costs) if costs else None,
            "duration_ms": round((self._ended - self._started).total_seconds() * 1000),
        }

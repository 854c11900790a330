"""The table of a bench: measured values beside their floor, and the goals for them."""
# ruff: noqa: RUF001 - the signs of a table for people

import json
import os
import platform
import sqlite3
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

SLACK = 3.0
"""A ratio may miss its goal by this factor before a bench fails: machines are noisy."""


@dataclass(frozen=True)
class Goal:
    """Goal for a figure: at most or at least a number, of ours or of ours / floor."""

    bound: Literal["≤", "≥"]
    number: float
    of: Literal["ratio", "ours"] = "ratio"

    def met(self, value: float, slack: float = 1.0) -> bool:
        if self.bound == "≤":
            return value <= self.number * slack
        return value >= self.number / slack


def most(number: float, of: Literal["ratio", "ours"] = "ratio") -> Goal:
    return Goal("≤", number, of)


def least(number: float, of: Literal["ratio", "ours"] = "ratio") -> Goal:
    return Goal("≥", number, of)


@dataclass(frozen=True)
class Row:
    """A measurement. `ours` and `floor` hold every round; the median counts."""

    measure: str
    unit: str
    ours: Sequence[float]
    floor: Sequence[float] = ()
    floor_is: str = ""
    goal: Goal | None = None
    steady: bool = True
    """True if the figure is steady enough for a bench to fail by it."""

    @property
    def ratio(self) -> float | None:
        return statistics.median(self.ours) / statistics.median(self.floor) if self.floor else None

    @property
    def judged(self) -> float | None:
        """The number that the goal speaks of."""
        if self.goal is None:
            return None
        return statistics.median(self.ours) if self.goal.of == "ours" else self.ratio

    @property
    def met(self) -> bool | None:
        value = self.judged
        return None if self.goal is None or value is None else self.goal.met(value)

    def cells(self) -> tuple[str, ...]:
        floor = f"{_figure(self.floor, self.unit)} {self.floor_is}" if self.floor else "–"
        ratio = "–" if self.ratio is None else f"{self.ratio:.3g}×"
        return self.measure, _figure(self.ours, self.unit), floor, ratio, self._goal()

    def as_json(self) -> dict[str, Any]:
        return {
            "measure": self.measure,
            "unit": self.unit,
            "ours": statistics.median(self.ours),
            "ours_rounds": list(self.ours),
            "floor": statistics.median(self.floor) if self.floor else None,
            "floor_rounds": list(self.floor),
            "floor_is": self.floor_is,
            "ratio": self.ratio,
            "goal": self._goal(),
            "met": self.met,
        }

    def _goal(self) -> str:
        if self.goal is None:
            return "–"
        unit = "×" if self.goal.of == "ratio" else f" {self.unit}"
        word = "" if self.met is None else " met" if self.met else " MISSED"
        return f"{self.goal.bound} {self.goal.number:.3g}{unit}{word}"


@dataclass
class Table:
    rows: list[Row] = field(default_factory=list)
    load_before: tuple[float, ...] = field(default_factory=os.getloadavg)

    def add(self, *rows: Row) -> None:
        """Show rows. A steady ratio of two figures of one run may not miss its goal by `SLACK`."""
        for row in rows:
            print("\n" + " | ".join(row.cells()), end="", flush=True)  # noqa: T201 - as it comes
        self.rows += rows
        for row in rows:
            if row.steady and row.goal is not None and row.goal.of == "ratio":
                assert row.ratio is not None, "a ratio needs a floor"
                assert row.goal.met(row.ratio, SLACK), row.cells()

    def text(self) -> str:
        lines = [("measure", "ours", "floor", "ratio", "goal")]
        lines += [row.cells() for row in self.rows]  # type: ignore[misc] # each has five cells
        return "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], ("---",) * 5, *lines[1:]])

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = {"machine": self._machine(), "rows": [row.as_json() for row in self.rows]}
        path.write_text(json.dumps(whole, indent=2, ensure_ascii=False), encoding="utf-8")

    def _machine(self) -> dict[str, Any]:
        return {
            "cpus": os.cpu_count(),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "load_before": self.load_before,
            "load_after": os.getloadavg(),
        }


def _figure(rounds: Sequence[float], unit: str) -> str:
    value = statistics.median(rounds)
    return f"{value:,.0f} {unit}" if value >= 1000 else f"{value:.3g} {unit}"

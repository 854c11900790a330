"""Detection of a steady rise in a figure of a process.

Samples scatter: memory is given back late, watchers come and go. So the first third of the samples
is ignored, because caches and pools fill; of the rest, the lowest sample of each of twelve parts
counts. A figure rises *steadily* if at least 80 % of all pairs of parts rise (Kendall's tau of 0.6
or more) and it has risen by more than an allowance. The slope is the median of the slopes of all
pairs (Theil and Sen), which a few outliers do not change.
"""

import statistics
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

PARTS = 12
STEADY_TAU = 0.6
_WARM_UP = 1 / 3


class Sample(NamedTuple):
    """A figure after a number of tasks."""

    tasks: int
    value: float


class Trend(NamedTuple):
    """Development of a figure: median, slope per 1,000 tasks, rise by it, Kendall's tau."""

    median: float
    slope: float
    rise: float
    tau: float

    def rises(self, allowance: float) -> bool:
        """Return True if it rises steadily, and has risen by more than an allowance."""
        return self.tau >= STEADY_TAU and self.rise > allowance


def trend(samples: Sequence[Sample]) -> Trend:
    """Return how a figure has developed, from samples in the order of time.

    Raises:
        ValueError: there are too few samples.
    """
    judged = samples[int(len(samples) * _WARM_UP) :]
    if len(judged) < PARTS:
        raise ValueError(f"{len(samples)} samples are too few for a trend")
    bounds = [len(judged) * part // PARTS for part in range(PARTS + 1)]
    lowest = [
        min(judged[begin:end], key=lambda sample: sample.value) for begin, end in pairwise(bounds)
    ]
    pairs = list(combinations(lowest, 2))
    signs = [(later.value > one.value) - (later.value < one.value) for one, later in pairs]
    slopes = [
        (later.value - one.value) / (later.tasks - one.tasks) * 1000
        for one, later in pairs
        if later.tasks > one.tasks
    ]
    slope = statistics.median(slopes) if slopes else 0.0
    return Trend(
        statistics.median(sample.value for sample in judged),
        slope,
        slope * (lowest[-1].tasks - lowest[0].tasks) / 1000,
        sum(signs) / len(signs),
    )

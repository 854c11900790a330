"""A short soak, and that its judgement is right."""

import random
from pathlib import Path

import pytest

from tests.bench.load import run
from tests.bench.soak import FIGURES, soak
from tests.bench.table import Row, Table
from tests.bench.trend import Sample, trend

pytestmark = pytest.mark.bench

SECONDS = 20.0
RISING = [Sample(10 * number, 100 + number / 20) for number in range(240)]
NOISE = random.Random(1)  # noqa: S311  # no secret


def test_a_leak_is_found_under_scatter() -> None:
    found = trend([Sample(each.tasks, each.value + NOISE.uniform(0, 5)) for each in RISING])
    assert found.rises(5.0)
    assert found.slope == pytest.approx(5.0, rel=0.3)


@pytest.mark.parametrize(
    "samples",
    [
        [Sample(each.tasks, 100 + NOISE.uniform(0, 30)) for each in RISING],  # scatter
        [Sample(each.tasks, min(each.value, 103.0)) for each in RISING],  # a cache that fills
        [Sample(each.tasks, 100 + 50 * (each.tasks > 1600)) for each in RISING],  # one step
        [Sample(each.tasks, 200 - each.value) for each in RISING],
    ],
)
def test_what_does_not_rise_steadily_is_none(samples: list[Sample]) -> None:
    assert not trend(samples).rises(5.0)


def test_a_short_soak(tmp_path: Path, model: str, table: Table) -> None:
    report = run(lambda: soak(tmp_path / "home", model, SECONDS))
    assert report.soak.tasks > 0
    assert report.soak.messages > 0
    assert report.soak.streams > 0
    assert not report.rising, report.text()
    table.add(
        *(
            Row(
                f"a soak of {SECONDS:g} s, {each.name}",
                each.unit,
                [report.trends[each.name].median],
            )
            for each in FIGURES
            if each.allowance is not None
        )
    )

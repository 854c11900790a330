"""The one table that all benches fill."""

from collections.abc import Generator

import pytest

from tests import ROOT
from tests.bench.processes import scripted_model
from tests.bench.table import Table

REPORT = ROOT / "build" / "bench.json"


@pytest.fixture(scope="session")
def table() -> Generator[Table]:
    """Rows end up here; the whole is printed and written to build/bench.json at the end."""
    table = Table()
    yield table
    table.write(REPORT)
    print(f"\n\n{table.text()}\n\n{REPORT}")  # noqa: T201 - a bench is there to be read


@pytest.fixture(scope="session")
def model() -> Generator[str]:
    """The address of a scripted model in a process of its own."""
    with scripted_model() as url:
        yield url

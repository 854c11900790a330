"""Databases of gateways, and a run's report about itself: the seed and the number of kills."""

from collections.abc import AsyncGenerator

import pytest

from tests.chaos.conversation import DATABASE
from tests.chaos.seeds import SEED
from tests.support.postgres_server import postgres_url
from tests.support.process_kills import KILLS


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.slow]),
    ]
)
async def on_database(
    request: pytest.FixtureRequest, environ: dict[str, str]
) -> AsyncGenerator[dict[str, str]]:
    """The environment of a gateway on a database of each kind."""
    if request.param == "sqlite":
        yield environ
    else:
        async with postgres_url() as url:
            yield {**environ, DATABASE: url}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    kills = sum(
        value for report in reports for name, value in report.user_properties if name == KILLS
    )
    if kills:
        terminalreporter.write_line(f"CHAOS_SEED={SEED}: processes were killed at {kills} points")

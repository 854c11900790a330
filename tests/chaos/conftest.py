"""What a run of these tests says about itself: the seed, and how often it killed a process."""

import pytest

from tests.chaos.seeds import SEED

KILLS = "kills"
"""The property of a test that killed processes: how often."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    kills = sum(
        value for report in reports for name, value in report.user_properties if name == KILLS
    )
    if kills:
        terminalreporter.write_line(f"CHAOS_SEED={SEED}: processes were killed at {kills} points")

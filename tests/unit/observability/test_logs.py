"""The log format and the setup of logging."""

import io
import logging
from collections.abc import Iterator

import pytest

from internal.agent.domain.secrets import MASK, register_secret
from internal.observability.logs import LineFormatter, configure_logging

CANARY = "sk-canary-7f3a"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Configure logging to a buffer, and restore the root logger afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    buffer = io.StringIO()
    try:
        configure_logging(buffer)
        yield buffer
    finally:
        root.handlers, root.level = handlers, level


def test_a_line_has_the_fields_of_its_event(stream: io.StringIO) -> None:
    logging.getLogger("internal.tests").info("run finished", extra={"run_id": "run-1"})
    (line,) = stream.getvalue().splitlines()
    assert line.endswith("INFO run finished run_id=run-1")


def test_a_value_cannot_forge_a_line(stream: io.StringIO) -> None:
    logging.getLogger("internal.tests").info("x", extra={"why": "a b\nFORGED"})
    (line,) = stream.getvalue().splitlines()
    assert "FORGED" in line


def test_secrets_are_masked_in_values_and_tracebacks(stream: io.StringIO) -> None:
    logger = logging.getLogger("internal.tests")
    register_secret(CANARY)
    logger.info("x", extra={"key": f"x {CANARY}"})
    logger.error("failed", exc_info=ValueError(CANARY))
    assert CANARY not in stream.getvalue()
    assert stream.getvalue().count(MASK) == 2
    assert stream.getvalue().splitlines()[-1].startswith("ValueError")


def test_libraries_log_from_warning_on(stream: io.StringIO) -> None:
    logging.getLogger("library").info("hidden")
    logging.getLogger("library").warning("shown")
    assert "hidden" not in stream.getvalue()
    assert "shown" in stream.getvalue()


def test_an_empty_value_is_quoted() -> None:
    record = logging.makeLogRecord({"msg": "x", "levelname": "INFO", "n": ""})
    assert LineFormatter().format(record).endswith("INFO x n=''")

"""The dispatcher lock, the log format and the parameters that permission rules read."""

import io
import logging
from pathlib import Path

import pytest

from internal.agent.domain.errors import Conflict, StoreUnavailable
from internal.dispatch.lock import dispatcher_lock
from internal.observability.logs import HIDDEN, Lines, log_to
from internal.tools.registry import TOOLS


def held_again(folder: Path) -> None:
    with dispatcher_lock(folder):
        raise AssertionError("two dispatchers")


def test_one_dispatcher_a_folder(tmp_path: Path) -> None:
    with dispatcher_lock(tmp_path), pytest.raises(Conflict, match="Another larkspur"):
        held_again(tmp_path)
    with dispatcher_lock(tmp_path):
        pass
    with pytest.raises(StoreUnavailable, match="cannot be written"):
        held_again(tmp_path / "none")


def test_a_log_line_has_its_fields_and_no_secret_and_no_forged_line() -> None:
    stream = io.StringIO()
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        log_to(stream, ["sk-canary", ""])
        logger = logging.getLogger("internal.tests")
        logger.info(
            "run finished", extra={"run_id": "run-1", "why": "a b\nFORGED", "key": "x sk-canary"}
        )
        logger.error("broke", exc_info=ValueError("sk-canary"))
        logging.getLogger("somebody").info("not heard")
    finally:
        root.handlers, root.level = before, level
    lines = stream.getvalue().splitlines()
    assert "INFO run finished run_id=run-1" in lines[0]
    assert "FORGED" in lines[0]
    assert "sk-canary" not in stream.getvalue()
    assert HIDDEN in stream.getvalue()
    assert "not heard" not in stream.getvalue()
    assert lines[-1].startswith("ValueError")
    assert Lines([]).format(logging.makeLogRecord({"msg": "x", "levelname": "INFO", "n": ""}))


def test_permission_rules_find_what_they_look_at() -> None:
    """Rules read `command`, `path` and `url`; a tool with other names would slip through."""
    looked_at = {"shell": "command", "web_fetch": "url", "search_files": "path"}
    for tool in TOOLS:
        wanted = looked_at.get(tool.spec.name, "path")
        assert wanted in tool.spec.parameters["properties"], tool.spec.name

"""Calls without a result: their output, duration and cause of the end."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.runs.stopped_calls import MAX_RESULT_BYTES, CallStop, call_stop, close_call
from internal.agent.domain.ids import RunId
from internal.agent.domain.questions import CLOCK, NOBODY
from internal.agent.domain.react.steps import TurnOutcome
from internal.agent.domain.react.turn import OUTCOME_UNKNOWN
from internal.agent.store.call_outputs import CallOutputs

RUN = RunId("run-1")
EPOCH = datetime.fromtimestamp(0, UTC).isoformat()


@pytest.mark.parametrize(
    ("outcome", "stop"),
    [
        ({"stop_reason": "user_stop", "by": "p", "name": "Mei"}, CallStop("person", "Mei", "p")),
        ({"stop_reason": "user_stop", "by": NOBODY}, CallStop("failure")),
        ({"stop_reason": "user_stop", "by": "p", "via": CLOCK}, CallStop("failure")),
        ({"stop_reason": "timeout"}, CallStop("limit")),
        ({"stop_reason": "budget_exceeded"}, CallStop("limit")),
        ({"stop_reason": "interrupted"}, CallStop("process")),
        ({"stop_reason": "error"}, CallStop("failure")),
    ],
)
def test_the_end_of_a_run_says_what_ended_its_calls(
    outcome: dict[str, Any], stop: CallStop
) -> None:
    assert call_stop(TurnOutcome(answer="", **outcome)) == stop


@pytest.mark.parametrize(
    ("stop", "words", "metadata"),
    [
        (CallStop("person", "Mei"), "stopped by Mei", {"stopped": "person", "stopped_by": "Mei"}),
        (CallStop("person"), "stopped by a person", {"stopped": "person"}),
        (CallStop("limit"), "stopped by a limit of the task", {"stopped": "limit"}),
        (CallStop("failure"), "stopped because the task ended", {"stopped": "failure"}),
        (CallStop("process"), "the process of Larkspur that ran it ended", {"stopped": "process"}),
    ],
)
def test_the_event_has_the_output_the_duration_and_the_cause(
    tmp_path: Path, stop: CallStop, words: str, metadata: dict[str, str]
) -> None:
    outputs = CallOutputs(tmp_path)
    outputs.open(RUN, "call-1").write("half\n")
    closed = close_call(outputs, RUN, "call-1", tool="shell", started=EPOCH, stop=stop)
    assert str(closed.error).startswith(f"half\n[{OUTCOME_UNKNOWN}: {words} after ")
    assert closed.duration_ms > 0
    assert closed.metadata == metadata


def test_a_call_without_output_says_that_its_outcome_is_unknown(tmp_path: Path) -> None:
    outputs, stop = CallOutputs(tmp_path), CallStop("process")
    unknown = close_call(outputs, RUN, "call-1", tool="shell", started=EPOCH, stop=stop)
    assert (unknown.error, unknown.duration_ms) == (OUTCOME_UNKNOWN, 0)
    outputs.open(RUN, "call-2").touch()
    silent = close_call(outputs, RUN, "call-2", tool="shell", started=EPOCH, stop=stop)
    assert str(silent.error).startswith(f"[{OUTCOME_UNKNOWN}")


def test_long_output_fits_into_an_event_and_clocks_may_differ(tmp_path: Path) -> None:
    outputs = CallOutputs(tmp_path)
    outputs.open(RUN, "call-1").write("\0" * 40_000)
    later = datetime(2999, 1, 1, tzinfo=UTC).isoformat()
    closed = close_call(
        outputs, RUN, "call-1", tool="shell", started=later, stop=CallStop("process")
    )
    assert closed.duration_ms == 0
    assert len(str(closed.error).encode()) < MAX_RESULT_BYTES

"""The answers of runs as completions give them."""

from typing import Any

from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.tasks import Run
from internal.channels.web.completions.asked_questions import (
    list_asked,
    phrases_for,
    question_text,
)
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError
from internal.i18n.runs import RunMessages

RUN_FAILED = "run_failed"
"""The code of the error that a failed run is."""
MAX_RUN_SECONDS = 3_600
"""A run that takes longer goes on; its completion is an error that says so."""


async def answer_of(request: ApiRequest[Any, Any], submitted: Submitted, run: Run) -> str:
    """Return the answer of a settled run; of one that waits, what it asks.

    Raises:
        HttpError: the run failed, or has not ended in time.
    """
    if not run.is_settled and request.services.gateway.is_closed:
        message = f"The gateway stops, and the run goes on: task {submitted.task_id}. Ask again."
        raise HttpError(503, "stopping", message, {"retry-after": "2"})
    if not run.is_settled:
        message = f"The run has not ended in time and goes on: task {submitted.task_id}."
        raise HttpError(504, "timeout", message)
    if run.status == "failed":
        raise HttpError(502, RUN_FAILED, run.error or "The run failed.")
    if run.status == "waiting":
        asked = await list_asked(request, submitted.session_id)
        return question_text(asked.records, asked.phrases)
    if run.status != "cancelled" or run.answer:
        return run.answer
    task = await request.services.gateway.queries.task(submitted.task_id, request.principal)
    phrases = phrases_for(task.instruction)
    return RunMessages(phrases.language).ended(run.stop_reason or "") or phrases("ended")


def reached_limit(run: Run) -> bool:
    """Return whether a limit ended a run before it was done."""
    return run.status == "completed" and run.stop_reason not in {None, "final_answer"}

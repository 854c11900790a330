"""The answers of runs as completions give them."""

from typing import Any

from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.tasks import Run
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError

MAX_RUN_SECONDS = 3_600
"""A run that takes longer goes on; its completion is an error that says so."""


def stop_error(submitted: Submitted) -> HttpError:
    """Return the error of a gateway that stops before a run is settled: another one goes on."""
    message = f"The gateway stops, and the run goes on: task {submitted.task_id}. Ask again."
    return HttpError(503, "stopping", message, {"retry-after": "2"})


async def answer_of(request: ApiRequest[Any, Any], submitted: Submitted, run: Run) -> str:
    """Return the answer of a settled run; of one that waits, what it asks.

    Raises:
        HttpError: the run failed, or has not ended in time.
    """
    if not run.is_settled and request.services.gateway.is_closed:
        raise stop_error(submitted)
    if not run.is_settled:
        message = f"The run has not ended in time and goes on: task {submitted.task_id}."
        raise HttpError(504, "timeout", message)
    if run.status == "failed":
        raise HttpError(502, "run_failed", run.error or "The run failed.")
    if run.status != "waiting":
        return run.answer
    asked = await request.services.gateway.queries.questions(
        request.principal, session_id=submitted.session_id
    )
    lines = [
        f"{question.title} Answer it on the page or with: larkspur answer {question.id}"
        for question, record in ((record.question, record) for record, _ in asked)
        if record.run_id == submitted.run_id
    ]
    return "\n".join(["The task waits for an answer.", *lines])


def reached_limit(run: Run) -> bool:
    """Return whether a limit ended a run before it was done."""
    return run.status == "completed" and run.stop_reason not in {None, "final_answer"}

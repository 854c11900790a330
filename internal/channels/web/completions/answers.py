"""The answers of runs as completions give them."""

import asyncio
from contextlib import aclosing, suppress
from typing import Any

from internal.agent.app.events.subscription import StreamItem
from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.events.envelope import EventRecord
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

_SETTLING = frozenset(
    {"workflow.result.final", "workflow.result.cancelled", "workflow.question.asked"}
)


async def settled_run(request: ApiRequest[Any, Any], submitted: Submitted) -> Run:
    """Wait until there is nothing to wait for, or the limit has passed, and return the run."""
    gateway = request.services.gateway
    batches = gateway.watch(frozenset({submitted.session_id}), None)
    with suppress(TimeoutError):
        async with asyncio.timeout(MAX_RUN_SECONDS), aclosing(batches):
            async for batch in batches:
                if any(map(may_settle, batch)) and (run := await find_settled(request, submitted)):
                    return run
    _, run = await gateway.queries.task_with_run(submitted.task_id, request.principal)
    return run


async def find_settled(request: ApiRequest[Any, Any], submitted: Submitted) -> Run | None:
    """Return a run if there is nothing to wait for: it has ended, or it or a subtask asks."""
    queries = request.services.gateway.queries
    _, run = await queries.task_with_run(submitted.task_id, request.principal)
    if run.is_settled:
        return run
    asks = run.awaits_tasks and (await list_asked(request, submitted.session_id)).records
    return run if asks else None


def may_settle(item: StreamItem) -> bool:
    """Return True if there may be nothing to wait for now: also before the stream began."""
    return not isinstance(item, EventRecord) or item.event in _SETTLING


def stop_error(submitted: Submitted) -> HttpError:
    """Return the error of a gateway that stops before a run is settled; another one continues."""
    message = f"The gateway stops, and the run goes on: task {submitted.task_id}. Ask again."
    return HttpError(503, "stopping", message, {"retry-after": "2"})


async def answer_of(request: ApiRequest[Any, Any], submitted: Submitted, run: Run) -> str:
    """Return the answer of a settled run, or the questions of a waiting one.

    Raises:
        HttpError: the run failed, or has not ended in time.
    """
    if run.status == "waiting":
        asked = await list_asked(request, submitted.session_id)
        if asked.records or run.is_settled:
            return question_text(asked.records, asked.phrases)
    if not run.is_settled and request.services.gateway.is_closed:
        raise stop_error(submitted)
    if not run.is_settled:
        message = f"The run has not ended in time and goes on: task {submitted.task_id}."
        raise HttpError(504, "timeout", message)
    if run.status == "failed":
        raise HttpError(502, RUN_FAILED, run.error or "The run failed.")
    if run.status != "cancelled" or run.answer:
        return run.answer
    task = await request.services.gateway.queries.task(submitted.task_id, request.principal)
    phrases = phrases_for(task.instruction)
    return RunMessages(phrases.language).ended(run.stop_reason or "") or phrases("ended")


def reached_limit(run: Run) -> bool:
    """Return whether a limit ended a run before it was done."""
    return run.status == "completed" and run.stop_reason not in {None, "final_answer"}

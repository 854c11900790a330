"""A session with thousands of events, stored before a gateway opens it."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from internal.agent.app.runs.creation import load_task, new_task_ids
from internal.agent.app.runs.finalization import (
    end_events,
    finalize_run,
    stop_outcome,
    summarize,
    with_totals,
)
from internal.agent.domain.errors import RunStopped
from internal.agent.domain.events.envelope import EventRecord, RunIds, rfc3339
from internal.agent.domain.events.types import (
    Event,
    NodeCompleted,
    NodeStarted,
    OutputSummary,
    ToolCompleted,
    ToolStarted,
)
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.usage import Usage
from internal.agent.store.database import Write
from internal.agent.store.stores import Stores
from tests.support.web_app import open_web_app

ITERATIONS = 2_000
EVENTS_PER_ITERATION = 5


async def fill(home: Path, iterations: int = ITERATIONS) -> str:
    """Store the events of one long run that was stopped, and return its session."""
    async with open_web_app(home) as app:
        run = await app.task("a very long task")
        for first in range(0, iterations, 100):
            events = [one for n in range(first, first + 100) for one in iteration(n)]
            await app.store(run, *events)
        used = Usage(100 * iterations, 20 * iterations)
        await app.database.write(partial(stop, run, used))
        return run.session_id


def stop(ids: RunIds, usage: Usage) -> Write[list[EventRecord]]:
    """Store that a person stopped a run, with the usage of its replies, as the engine does."""
    stores = Stores()
    run = yield from stores.runs.get(ids.run_id)
    assert run is not None
    task = yield from load_task(stores, run)
    outcome = stop_outcome(RunStopped(LOCAL_OWNER.id, "web"))
    result = summarize(run, task, None, outcome, ended=rfc3339(datetime.now(UTC)))
    used = result.end._replace(usage=usage)
    result = msgspec.structs.replace(result, end=used)
    updated, cancelled = end_events(run, result, None, outcome)
    first = yield from stores.events.reserve_seqs_of_idle_run(run.id, 2)
    yield from finalize_run(stores, run, task, result=result, ids=new_task_ids())
    last = yield from with_totals(stores, run, cancelled)
    ended = [(updated, used.ended), (last, used.ended)]
    return (yield from stores.events.append(ids, first, ended))


def iteration(n: int) -> list[Event]:
    """The five events of an iteration."""
    node, call = f"iter:{n}", f"call-{n}"
    return [
        NodeStarted(node_id=node, kind="iteration", iteration=n),
        OutputSummary(
            node_id=f"{node}:say",
            iteration=n,
            content=f"remark {n}",
            tool_call_count=1,
            llm_duration_ms=100,
            llm_request_id=f"request-{n}",
            llm_model="claude-sonnet-4-5",
            usage=Usage(100, 20),
        ),
        ToolStarted(
            call_id=call,
            tool_name="read_file",
            arguments={"path": f"notes/{n}.md"},
            iteration=n,
            risk="read",
        ),
        ToolCompleted(call_id=call, tool_name="read_file", duration_ms=3, result="x" * 200),
        NodeCompleted(node_id=node, kind="iteration", duration_ms=110),
    ]

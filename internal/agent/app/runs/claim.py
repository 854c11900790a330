"""Claiming: a run begins in this process or goes back, in the same transaction for its task."""

from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Run
from internal.agent.store.database import Write
from internal.agent.store.stores import Stores


def claim_run(
    stores: Stores, run_id: RunId, owner: str, lease_until: str, now: str
) -> Write[Run | None]:
    """Take a queued run whose lane is free; None when it may not be taken now."""
    run = yield from stores.runs.claim(run_id, owner, lease_until, now)
    if run is not None:
        yield from stores.tasks.set_status(run.task_id, "running", None, now)
    return run


def requeue_run(stores: Stores, run: Run, now: str) -> Write[bool]:
    """Put a running run back into the queue; False when another process has taken it."""
    if not (yield from stores.runs.requeue(run.id, run.fence)):
        return False
    yield from stores.tasks.set_status(run.task_id, "queued", None, now)
    return True

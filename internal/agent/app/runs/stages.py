"""Stages: prepare, execute, summarize, persist, announced all the same way."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from internal.agent.app.events.writer import Emit
from internal.agent.domain.errors import LeaseLost, StoreError
from internal.agent.domain.events.event import Event
from internal.agent.domain.events.types import NodeCompleted, NodeFailed, NodeStarted
from internal.agent.domain.text import truncate_json
from internal.agent.ports.runtime import Clock

STAGES = ("prepare", "execute", "summarize", "persist")


def started(name: str) -> NodeStarted:
    """Return the event that announces a stage."""
    return NodeStarted(node_id=name, step_index=STAGES.index(name) + 1, step_description=name)


@asynccontextmanager
async def stage(name: str, emit: Emit, clock: Clock) -> AsyncGenerator[None]:
    """Announce a stage's start and its end, done or failed.

    A cancellation passes: only the coordinator knows its reason and closes the open nodes.
    """
    begun = clock.monotonic()
    await emit(started(name))
    try:
        yield
    except (LeaseLost, StoreError):
        raise  # there is nothing to write to any more
    except Exception as error:
        await emit(
            NodeFailed(
                node_id=name, phase=name, error=truncate_json(describe(error)), recoverable=False
            )
        )
        raise
    await emit(completed(name, begun, clock))


def completed(name: str, begun: float, clock: Clock) -> Event:
    """Return the event that says a stage is done."""
    return NodeCompleted(node_id=name, duration_ms=round((clock.monotonic() - begun) * 1000))


def describe(error: Exception) -> str:
    """Return what a person may read of an error; the rest is in the log."""
    return str(error) or type(error).__name__

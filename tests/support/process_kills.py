"""Kills of processes, and the wait for their events."""

from collections.abc import Callable
from contextlib import aclosing

from tests.chaos.restarting_gateway import RestartingGateway

KILLS = "kills"
"""The property of a test that killed processes: how often."""


Record = Callable[[str, object], None]


async def wait_for_event(gateway: RestartingGateway, session_id: str, event: str) -> None:
    """Return when a reader received such an event."""
    async with aclosing(gateway.stream(f"session_id={session_id}")) as frames:
        async for frame in frames:
            if frame.event == event:
                return

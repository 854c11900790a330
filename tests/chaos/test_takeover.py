"""A gateway is suspended past its lease; another one takes over; then the first one wakes up."""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tests import ROOT
from tests.chaos.conversation import (
    MODEL,
    Conversation,
    check,
    check_database,
    open_conversation,
)
from tests.chaos.scenario import list_events
from tests.support.scripted_model import Reply

WITHOUT_LOCKS = (sys.executable, str(ROOT / "tests/support/refused_locks.py"))
"""The lock of a file would show that the suspended process lives; other machines do not see it."""
HELD = "held"

Environ = dict[str, str]


def hold_first(request: dict[str, Any]) -> Reply:
    """Return the reply of the model; the first one is held until both gateways have asked."""
    is_first = not any(message.get("tool_calls") for message in request["messages"])
    return structs.replace(MODEL(request), hold=HELD if is_first else None)


async def take_over(conversation: Conversation) -> None:
    """Suspend the gateway during its first call of the model, and start another one."""
    await conversation.model.until_open(1)
    conversation.gateway.signal(signal.SIGSTOP)
    await conversation.gateway.start_beside("host:second")
    await conversation.model.until_asked(2)
    conversation.model.release(HELD)


def writes(conversation: Conversation) -> list[str]:
    """Return the calls of Lark's API that show something."""
    calls = [entry.what for entry in conversation.sim.log if entry.kind == "call"]
    return [call for call in calls if "/im/v1/" in call and not call.startswith("GET")]


@pytest.mark.chaos
@pytest.mark.timeout(180)
async def test_a_gateway_that_wakes_up_after_its_lease_does_nothing(
    tmp_path: Path, on_database: Environ
) -> None:
    environ = {**on_database, "LARKSPUR_DISPATCH__LEASE_SECONDS": "2"}
    async with open_conversation(
        tmp_path, environ, ["host:first"], hold_first, WITHOUT_LOCKS
    ) as conversation:
        gateway = conversation.gateway
        await gateway.wait_until_up()
        suspended = gateway.serving
        await conversation.hold_while(take_over)
        await check(conversation)
        (task,) = (await gateway.get("/api/tasks"))["tasks"]
        events, written = await list_events(gateway, task["session_id"]), writes(conversation)
        suspended.process.send_signal(signal.SIGCONT)
        assert suspended.client is not None
        await suspended.client.request("GET", "/health")
        suspended.process.send_signal(signal.SIGTERM)  # it has time for all that it would do
        assert await suspended.process.wait() == 0
        assert writes(conversation)[len(written) :] == []
        assert await list_events(gateway, task["session_id"]) == events
        await check(conversation)
    check_database(gateway.home, environ)

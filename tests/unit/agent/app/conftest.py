"""A gateway on a real database whose dispatcher starts nothing."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from internal.agent.app.background_task import background_task
from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.gateway import Gateway
from internal.agent.app.supervision import Supervisor
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.observability.clock import SystemClock
from internal.tools.commands.background import BackgroundCommandPool
from internal.tools.instruction_trust import InstructionTrust
from tests.support.owner_reviews import owner_reviews
from tests.support.session_files import session_files
from tests.support.web_app import IdleDispatcher


@pytest.fixture
def dispatcher() -> IdleDispatcher:
    return IdleDispatcher()


@pytest.fixture
async def broadcaster(database: Database, stores: Stores) -> AsyncGenerator[EventBroadcaster]:
    opened = EventBroadcaster(database, stores, SystemClock(), "1.2.3")
    await opened.start()
    async with background_task(opened.follow(Supervisor(SystemClock()))):
        yield opened


@pytest.fixture
def gateway(
    database: Database,
    stores: Stores,
    broadcaster: EventBroadcaster,
    dispatcher: IdleDispatcher,
    tmp_path: Path,
) -> Gateway:
    return Gateway(
        database,
        stores,
        broadcaster=broadcaster,
        dispatcher=dispatcher,
        clock=SystemClock(),
        files=session_files(tmp_path, database, stores),
        commands=BackgroundCommandPool(SystemClock(), InstructionTrust(tmp_path)),
        reviews=owner_reviews(tmp_path),
    )

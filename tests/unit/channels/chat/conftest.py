"""The chat application on a real database with the echo service; runs are stored, not executed."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.gateway import Gateway
from internal.agent.store.stores import Stores
from internal.observability.clock import SystemClock
from internal.storage.database_url import open_database
from internal.tools.commands.background import BackgroundCommandPool
from internal.tools.instruction_trust import InstructionTrust
from tests.support.echo_app import EchoApp
from tests.support.owner_reviews import owner_reviews
from tests.support.session_files import session_files
from tests.support.web_app import IdleDispatcher


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[EchoApp]:
    clock, stores = SystemClock(), Stores()
    async with open_database(tmp_path / "larkspur.db") as database:
        broadcaster = EventBroadcaster(database, stores, clock, "1.2.3")
        await broadcaster.start()
        gateway = Gateway(
            database,
            stores,
            broadcaster=broadcaster,
            dispatcher=IdleDispatcher(),
            clock=clock,
            files=session_files(tmp_path, database, stores),
            commands=BackgroundCommandPool(clock, InstructionTrust(tmp_path)),
            reviews=owner_reviews(tmp_path),
        )
        yield EchoApp(database, stores, gateway, tmp_path)
        broadcaster.close()

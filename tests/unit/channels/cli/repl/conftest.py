"""A terminal session whose gateway gives fixed answers."""

from collections.abc import AsyncGenerator

import pytest

from tests.support.http_answers import AnsweringServer
from tests.support.repl_session import GatewaySession


@pytest.fixture
async def gateway(server: AnsweringServer) -> AsyncGenerator[GatewaySession]:
    made = GatewaySession(server)
    yield made
    await made.session.close()

"""The fixture of a local HTTP server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.http_site import HttpSite


@pytest.fixture
async def site() -> AsyncIterator[HttpSite]:
    site = HttpSite()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    yield site
    site.hold.set()
    server.close()
    await server.wait_closed()

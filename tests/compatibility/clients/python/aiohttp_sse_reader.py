# client: aiohttp-sse-client2
# registry: PyPI
# packages: aiohttp-sse-client2==0.3.0
# door: stream
import asyncio

import sse_scenarios
from aiohttp_sse_client2.client import EventSource


def read(url, last_id):
    loop = asyncio.new_event_loop()
    headers = {**sse_scenarios.HEADERS, **({"Last-Event-ID": last_id} if last_id else {})}

    async def opened():
        source = EventSource(url, headers=headers)
        await source.__aenter__()
        return source

    source = loop.run_until_complete(opened())
    try:
        while True:
            event = loop.run_until_complete(source.__anext__())
            yield event.type, event.data, event.last_event_id
    finally:
        loop.run_until_complete(source.close())


sse_scenarios.stream(read)

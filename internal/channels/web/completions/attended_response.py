"""A response whose work ends when its client leaves."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from internal.channels.web.requests import ClientDisconnected


class AttendedResponse(Response):
    """Makes a response while the client waits for it.

    Raises:
        ClientDisconnected: it left before the response was complete; the work was cancelled.
    """

    def __init__(self, make: Callable[[], Awaitable[Response]]) -> None:
        super().__init__()
        self._make = make

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Make the response and send it."""
        work = asyncio.create_task(self._respond(scope, send))
        leaving = asyncio.create_task(_wait_for_disconnect(receive))
        try:
            await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise ClientDisconnected
            work.result()
        finally:
            for task in (work, leaving):
                task.cancel()
            await asyncio.wait({work, leaving})

    async def _respond(self, scope: Scope, send: Send) -> None:
        response = await self._make()
        await response(scope, _wait_forever, send)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _wait_forever() -> Message:
    never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    return await never

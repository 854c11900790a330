"""The transport protocol. Standard library only, without asyncio."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

T = TypeVar("T")

USER_AGENT = "larkspur-cli"
"""Identifies the terminal to the gateway, which records it as the channel of a request."""


class Unreachable(Exception):
    """The gateway does not answer or stopped answering. The message is the reason."""


class Upload(NamedTuple):
    """The body of a request, sent while it is read: `size` bytes, in pieces that `chunks` returns.

    An exception of `chunks` ends the request and is raised by it.
    """

    media_type: str
    size: int
    chunks: Callable[[], Iterator[bytes]]


class Response(NamedTuple):
    """A complete HTTP response."""

    status: int
    body: bytes


class RefusedStream(Exception):
    """The gateway answered the request for a stream with an error response."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


class Transport(Protocol):
    """Sends the requests of one client, and schedules its work in a way that fits the transport."""

    @property
    def via(self) -> Literal["gateway", "process"]:
        """Place of execution of submitted tasks."""
        ...

    @property
    def address(self) -> str:
        """The gateway's address for messages."""
        ...

    async def request(self, method: str, path: str, body: bytes | Upload | None = None) -> Response:
        """Send a request and return the response, whatever its status. Bytes are JSON.

        Raises:
            Unreachable: there is no response.
        """
        ...

    def stream(self, path: str, last_id: str | None = None) -> AsyncGenerator[bytes]:
        """Yield the bytes of a response as they arrive, until it ends.

        With `last_id` the response is an event stream that continues after this id, "" from the
        beginning. The response may end too early without an error.

        Raises:
            RefusedStream: the gateway answered with an error.
            Unreachable: the connection cannot be made, broke, or was silent for too long.
        """
        ...

    async def reconnect(self) -> bool:
        """Look up the gateway's current address. Return whether a gateway answers there."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

    async def run_blocking(self, work: Callable[[], None]) -> None:
        """Run blocking work without blocking the runs of this process."""
        ...

    def start_from_signal(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start `work` from a signal handler, which may have interrupted anything."""
        ...

    async def adopt(self, run_id: str) -> bool:
        """Execute a queued run in this process if it has no other owner; return whether it does."""
        ...


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, as all do on a blocking transport.

    Saves the import of asyncio, a large part of the start-up time of a one-shot command.
    """
    try:
        coroutine.send(None)
    except StopIteration as stopped:
        result: T = stopped.value
        return result
    coroutine.close()
    raise RuntimeError("A coroutine on a blocking transport must not suspend.")

"""PostgreSQL notifications (NOTIFY): commits of other processes, and messages between processes."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from itertools import count

from internal.agent.domain.errors import StoreUnavailable
from internal.database_address.address import PostgresAddress
from internal.storage.postgres import errors
from internal.storage.postgres.connection import Connection, connect, disconnect

CHANNEL = "larkspur"
_MESSAGE_CHANNEL = "larkspur_messages"
_SEND = "select pg_notify('larkspur_messages', part) from unnest($1::text[]) as part"
_PART_CHARACTERS = 1900
"""Part of a message in one notification; the limit of the server is 8,000 bytes."""

_MAX_MESSAGE_CHARACTERS = 8_000_000
_MAX_WAITING_MESSAGES = 1000
CALL_SECONDS = 0.02
"""At most so often commits are announced: several at once."""

_PROBE_SECONDS = 15.0
_FIRST_PAUSE_SECONDS = 0.1
_MAX_PAUSE_SECONDS = 5.0


class Notifications:
    """Calls back after commits of other processes, on a connection of its own while it is needed.

    Also exchanges messages with the other processes: it is their `ProcessMessages`.

    Belongs to the loop that it is created in, except for `add`, `remove`, `send` and `listen`,
    which belong to the loop of the database, as the callbacks do.
    """

    def __init__(
        self, address: PostgresAddress, instance: str, database_loop: asyncio.AbstractEventLoop
    ) -> None:
        self._address = address
        self._instance = instance
        self._loop = asyncio.get_running_loop()
        self._database_loop = database_loop
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._numbers = count()
        self._is_scheduled = self._is_closed = False
        self._called_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self._listeners: list[Callable[[str], None]] = []
        self._outgoing: asyncio.Queue[str] = asyncio.Queue(_MAX_WAITING_MESSAGES)
        self._sent = count()
        self._incoming: dict[str, str] = {}
        """The beginnings of messages, by the process that sends the rest."""

    def add(self, callback: Callable[[], None]) -> int:
        """Call back from now on, and once when the first notification can be received."""
        number = next(self._numbers)
        self._callbacks[number] = callback
        self._call_in_thread(self._start)
        return number

    def remove(self, number: int) -> None:
        """Do not call back any more."""
        del self._callbacks[number]

    def send(self, text: str, /) -> None:
        """Send a text to all other processes, without waiting. It is lost when they are away."""
        self._call_in_thread(self._put, text)

    @contextmanager
    def listen(self, callback: Callable[[str], None], /) -> Generator[None]:
        """Call `callback` in the event loop with each text of others, for the length of a block."""
        self._listeners.append(callback)
        self._call_in_thread(self._start)
        try:
            yield
        finally:
            self._listeners.remove(callback)

    async def close(self) -> None:
        """Close the connection."""
        self._is_closed = True
        while self._task is not None and not self._task.done():
            self._task.cancel()  # more than once: closing a connection ignores it
            await asyncio.wait([self._task], timeout=_FIRST_PAUSE_SECONDS)

    def _call_in_thread(self, function: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the database is closed: there is nothing to tell
            self._loop.call_soon_threadsafe(function, *arguments)

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while not self._is_closed:
            with suppress(*errors.DRIVER_ERRORS, StoreUnavailable):
                connection = await connect(self._address)
                try:
                    await connection.add_listener(CHANNEL, self._receive)
                    await connection.add_listener(_MESSAGE_CHANNEL, self._receive_part)
                    pause = _FIRST_PAUSE_SECONDS
                    self._schedule()  # earlier commits are not announced
                    await self._send_until_end(connection)
                finally:
                    await disconnect(connection)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_SECONDS)

    def _receive(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        if payload != self._instance:
            self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            wait = self._called_at + CALL_SECONDS - self._loop.time()
            self._loop.call_later(max(wait, 0.0), self._call_soon)

    def _call_soon(self) -> None:
        self._is_scheduled = False
        self._called_at = self._loop.time()
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._database_loop.call_soon_threadsafe(self._call)

    def _call(self) -> None:
        for callback in list(self._callbacks.values()):
            callback()

    def _put(self, text: str) -> None:
        with suppress(asyncio.QueueFull):
            self._outgoing.put_nowait(text)

    async def _send_until_end(self, connection: Connection) -> None:
        """Send messages until the connection is closed.

        Raises:
            Exception: one of `errors.DRIVER_ERRORS`: the server does not answer.
        """
        # messages that waited for a connection are out of date
        self._outgoing = asyncio.Queue(_MAX_WAITING_MESSAGES)
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        sending = self._loop.create_task(self._send_messages(connection))
        ending = self._loop.create_task(ended.wait())
        try:
            await asyncio.wait({sending, ending}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            sending.cancel()
            ending.cancel()
            await asyncio.wait({sending, ending})

    async def _send_messages(self, connection: Connection) -> None:
        while True:
            try:
                async with asyncio.timeout(_PROBE_SECONDS):  # `wait_for` may ignore cancellation
                    texts = [await self._outgoing.get()]
            except TimeoutError:
                await connection.fetchval("select 1")  # a host that vanished does not close it
                continue
            while not self._outgoing.empty():
                texts.append(self._outgoing.get_nowait())
            await connection.execute(_SEND, [part for text in texts for part in self._split(text)])

    def _split(self, text: str) -> list[str]:
        """Return a message as notifications; no two are equal, as equal ones would arrive once."""
        pieces = [
            text[start : start + _PART_CHARACTERS]
            for start in range(0, max(len(text), 1), _PART_CHARACTERS)
        ]
        ends = [*(len(pieces) - 1) * "+", "."]
        return [
            f"{self._instance} {next(self._sent)} {end}{piece}"
            for end, piece in zip(ends, pieces, strict=True)
        ]

    def _receive_part(self, _connection: object, _pid: int, _channel: str, part: object) -> None:
        instance, _, rest = str(part).partition(" ")
        piece = rest.partition(" ")[2]
        if instance == self._instance or not piece:
            return
        text = self._incoming.pop(instance, "") + piece[1:]
        if piece[0] == "+" and len(text) < _MAX_MESSAGE_CHARACTERS:
            self._incoming[instance] = text
        elif piece[0] == ".":
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._database_loop.call_soon_threadsafe(self._deliver, text)

    def _deliver(self, text: str) -> None:
        for callback in [*self._listeners]:
            callback(text)

"""The relay: live output of the runs of one process for the subscribers of another.

A process announces the sessions that it shows. The others then send it the deltas of these
sessions, a few times a second, and the text so far of their open nodes. Nothing of this is stored.
"""

import asyncio
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from internal.agent.app.events.live_buffer import SessionFilter
from internal.agent.domain.events.envelope import (
    EventRecord,
    WorkflowEventEnvelope,
)
from internal.agent.domain.events.types import OutputDelta, ToolProgress
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.runtime import ProcessMessages

JOIN_SECONDS = 0.05
"""For how long the deltas of a run are joined before they are sent: 20 times a second."""

ANNOUNCE_SECONDS = 5.0
"""How often a process repeats which sessions it shows."""

FORGET_SECONDS = 12.0
"""After how long without an announcement nothing is sent any more."""

ALL = "*"

_Delta = OutputDelta | ToolProgress


class _Announcement(msgspec.Struct, tag="watch"):
    """The sessions that a process shows; `*` stands for all. `opened` are new subscriptions."""

    shown: list[str]
    opened: list[str] = []


class _Output(msgspec.Struct, tag="live"):
    """An ephemeral event, as it is delivered to subscribers."""

    session_id: SessionId
    run_id: RunId
    event: str
    envelope: msgspec.Raw


_decoder = msgspec.json.Decoder(_Announcement | _Output)
_encoder = msgspec.json.Encoder()


class LiveRelay:
    """Exchanges live output with the other processes of a database.

    Args:
        messages: what the processes say to each other.
        deliver: receives the ephemeral events of other processes.
        partials: returns the text so far of the open nodes of sessions in this process.
    """

    def __init__(
        self,
        messages: ProcessMessages,
        deliver: Callable[[EventRecord], None],
        partials: Callable[[SessionFilter], list[EventRecord]],
    ) -> None:
        self._messages = messages
        self._deliver = deliver
        self._partials = partials
        self._wanted: dict[str, float] = {}
        """The sessions that other processes show, and until when that is known."""
        self._joined: dict[tuple[RunId, str], tuple[WorkflowEventEnvelope, _Delta]] = {}
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def open(self) -> Generator[None]:
        """Receive messages for the length of a block."""
        with self._messages.listen(self._receive):
            try:
                yield
            finally:
                if self._timer is not None:
                    self._timer.cancel()

    def announce(
        self, shown: Iterable[SessionId | None], opened: Iterable[SessionId | None] = ()
    ) -> None:
        """Tell the other processes which sessions this one shows; None stands for all.

        For a new subscription they answer with the text so far.
        """
        message = _Announcement([key or ALL for key in shown], [key or ALL for key in opened])
        if message.shown:
            self._messages.send(_encoder.encode(message).decode())

    def offer(self, record: EventRecord) -> None:
        """Pass on an ephemeral event of this process if another one shows its session."""
        envelope = record.envelope
        if envelope is None or not self._is_wanted(record.session_id):
            return
        payload = envelope.payload
        if not isinstance(payload, _Delta):
            self._flush()
            self._send(record)
            return
        key = (envelope.run_id, payload.node_id)
        if (before := self._joined.get(key)) is not None:
            first = before[1]
            payload = replace(payload, n=first.n + payload.n, text=first.text + payload.text)
        self._joined[key] = envelope, payload
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(JOIN_SECONDS, self._flush)

    def _is_wanted(self, session_id: SessionId) -> bool:
        if not self._wanted:
            return False
        now = asyncio.get_running_loop().time()
        return any(self._wanted.get(key, 0.0) > now for key in (session_id, ALL))

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        joined, self._joined = self._joined, {}
        for envelope, payload in joined.values():
            self._send(EventRecord.ephemeral(replace(envelope, payload=payload)))

    def _send(self, record: EventRecord) -> None:
        message = _Output(record.session_id, record.run_id, record.event, msgspec.Raw(record.json))
        self._messages.send(_encoder.encode(message).decode())

    def _receive(self, text: str) -> None:
        try:
            message = _decoder.decode(text)
        except msgspec.DecodeError:  # of another version of Larkspur
            return
        if isinstance(message, _Output):
            json = bytes(message.envelope)
            self._deliver(EventRecord(message.session_id, message.run_id, message.event, json))
            return
        now = asyncio.get_running_loop().time()
        self._wanted = {key: until for key, until in self._wanted.items() if until > now}
        self._wanted.update(dict.fromkeys(message.shown, now + FORGET_SECONDS))
        if message.opened:
            self._flush()  # the text so far contains what was joined
            sessions = None if ALL in message.opened else frozenset(map(SessionId, message.opened))
            for record in self._partials(sessions):
                self._send(record)

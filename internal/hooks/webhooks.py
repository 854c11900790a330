"""Event webhooks: sends stored events to receivers, each at least once and in log order.

Each receiver has a position in the event log, stored after every delivery. The log itself is the
queue: nothing else has to be written when an event happens, and nothing is lost when the process
dies.
"""

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus

import msgspec

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.processes.leadership import Leadership
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.principals import AuditEntry
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores
from internal.hooks.answer import HookFailed
from internal.hooks.signed_post import SignedPoster
from internal.settings.hooks import WebhookSettings

logger = logging.getLogger(__name__)

POLL_INTERVAL_SECONDS = 5.0
"""Events are found after this time at the latest."""
FIRST_DELAY_SECONDS = 1.0
MAX_DELAY_SECONDS = 300.0
"""The delay before an event is sent again; it doubles with each failure in a row."""
MAX_AGE = timedelta(hours=24)
"""An event that is older is given up when it cannot be delivered."""
MAX_REJECTIONS = 3
"""How often an event is sent to a receiver that rejects its content."""

_REJECTED = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)
_PAGE_SIZE = 100


class _Head(msgspec.Struct):
    event_id: str
    timestamp: datetime


class _Rejected(Exception):
    """The receiver does not accept the content of an event."""


class WebhookSender:
    """Sends the events of all sessions to the receivers of the settings.

    `first_delay_seconds` is the delay after the first failure of an event.
    """

    def __init__(
        self,
        webhooks: Sequence[WebhookSettings],
        database: Database,
        stores: Stores,
        *,
        broadcaster: EventBroadcaster,
        poster: SignedPoster,
        clock: Clock,
        leadership: Leadership,
        first_delay_seconds: float = FIRST_DELAY_SECONDS,
    ) -> None:
        self._webhooks = {_reader_name(webhook): webhook for webhook in webhooks}
        self._database = database
        self._stores = stores
        self._broadcaster = broadcaster
        self._poster = poster
        self._clock = clock
        self._leadership = leadership
        self._first_delay = first_delay_seconds

    async def open(self) -> None:
        """Store where new receivers begin, which is the end of the log; forget removed ones.

        Raises:
            StoreUnavailable: nothing was written.
        """
        await self._database.write(self._open)

    async def run(self, supervisor: Supervisor) -> None:
        """Send events whenever this process is the one that does, until cancelled."""
        if self._webhooks:
            await self._leadership.run(partial(self._run, supervisor), supervisor)

    async def _run(self, supervisor: Supervisor) -> None:
        wakes = {name: asyncio.Event() for name in self._webhooks}

        def on_event(record: EventRecord) -> None:
            for name, webhook in self._webhooks.items():
                if webhook.wants(record.event):
                    wakes[name].set()

        def on_commit() -> None:
            for wake in wakes.values():
                wake.set()

        with self._broadcaster.listen(on_event), self._database.watch(on_commit):
            async with asyncio.TaskGroup() as tasks:
                for name, webhook in self._webhooks.items():
                    sending = supervisor.repeat(
                        f"webhook {webhook.title}",
                        partial(self._send_new, name, webhook),
                        interval=POLL_INTERVAL_SECONDS,
                        wake=wakes[name],
                    )
                    tasks.create_task(sending)

    def _open(self) -> Write[None]:
        log = self._stores.events
        known = yield from log.list_readers()
        for name in known.keys() - self._webhooks.keys():
            yield from log.delete_reader(name)
        head = (yield from log.get_bounds()).head
        for name in self._webhooks.keys() - known.keys():
            yield from log.save_reader(name, head)

    async def _send_new(self, name: str, webhook: WebhookSettings) -> None:
        """Send the events after the position of a receiver."""
        log = self._stores.events
        position = (await self._database.read(log.list_readers)).get(name)
        if position is None:  # a process with other settings forgot it
            await self.open()
            return
        while page := await self._database.read(
            partial(log.list_after, position, None, _PAGE_SIZE)
        ):
            for record in page:
                if webhook.wants(record.event):
                    if not await self._leadership.is_held():
                        return
                    await self._deliver(webhook, record)
                    await self._database.write(partial(log.save_reader, name, record.position))
            position = page[-1].position
            if len(page) == _PAGE_SIZE:  # fewer are read again, which costs less than a commit
                await self._database.write(partial(log.save_reader, name, position))

    async def _deliver(self, webhook: WebhookSettings, record: EventRecord) -> None:
        """Send one event until it is accepted or given up."""
        head = msgspec.json.decode(record.json, type=_Head)
        details = {"webhook": webhook.title, "event_id": head.event_id}
        attempt = 0
        while True:
            attempt += 1
            try:
                await self._post(webhook, record, head.event_id)
            except (HookFailed, _Rejected) as failure:
                is_final = isinstance(failure, _Rejected) and attempt >= MAX_REJECTIONS
                if is_final or self._clock.now() - head.timestamp > MAX_AGE:
                    await self._give_up(webhook, head.event_id, str(failure))
                    return
                if attempt == 1:
                    reason = {"reason": str(failure)}
                    logger.warning("webhook not delivered", extra={**details, **reason})
                await asyncio.sleep(
                    min(self._first_delay * 2.0 ** min(attempt - 1, 20), MAX_DELAY_SECONDS)
                )
            else:
                if attempt > 1:
                    logger.warning("webhook delivered", extra={**details, "attempts": attempt})
                return

    async def _post(self, webhook: WebhookSettings, record: EventRecord, event_id: str) -> None:
        response = await self._poster.post(
            webhook.url,
            record.json,
            message_id=event_id,
            secret=webhook.secret,
            timeout_seconds=webhook.timeout_seconds,
        )
        if not response.is_success:
            kind = _Rejected if response.status in _REJECTED else HookFailed
            raise kind(f"answered with the status {response.status}")

    async def _give_up(self, webhook: WebhookSettings, event_id: str, reason: str) -> None:
        details = {"webhook": webhook.title, "event_id": event_id, "reason": reason}
        logger.error("webhook given up", extra=details)
        now, words = rfc3339(self._clock.now()), f"{webhook.title} {reason}"
        entry = AuditEntry(now, "larkspur", "webhook", "webhook.given_up", event_id, words)
        await self._database.write(partial(self._stores.audit.add, entry))


def _reader_name(webhook: WebhookSettings) -> str:
    """Return the name of a receiver in the database; its address may contain a secret."""
    return f"webhook:{hashlib.sha256(webhook.url.encode()).hexdigest()[:32]}"

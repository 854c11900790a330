"""Tells people about queued runs whose files are on a host that does not work."""

from datetime import timedelta
from functools import partial

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.domain.chats import OutgoingMessage
from internal.agent.domain.events.envelope import EventRecord, RunIds, rfc3339
from internal.agent.domain.events.types import Notice
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database, Write
from internal.agent.store.files import StrandedRun
from internal.agent.store.stores import Stores
from internal.normal_forms.time_zones import format_moment

MISSING_AFTER_SECONDS = 60.0
"""How long a host may be silent before people are told that runs wait for it."""
_MAX_TOLD = 100
"""How many runs are told about at once."""


class HostAbsence:
    """Records that this host works, and tells people about the runs of hosts that do not.

    Any number of processes may do this at once: each run is told once for each missing host.

    Args:
        name: the name of this host, "" if it executes no runs.
    """

    def __init__(
        self,
        name: str,
        database: Database,
        stores: Stores,
        *,
        broadcaster: EventBroadcaster,
        clock: Clock,
    ) -> None:
        self._name = name
        self._database = database
        self._stores = stores
        self._broadcaster = broadcaster
        self._clock = clock

    async def check(self) -> int:
        """Record that this host works, report missing hosts, and return the number of reports.

        Raises:
            StoreUnavailable: the record or a report cannot be stored.
        """
        now = self._clock.now()
        if self._name:
            await self._database.write(partial(self._stores.hosts.renew, self._name, rfc3339(now)))
        limit = rfc3339(now - timedelta(seconds=MISSING_AFTER_SECONDS))
        stranded = await self._database.read(
            partial(self._stores.hosts.list_stranded, limit, _MAX_TOLD)
        )
        for run in stranded:
            tell = partial(self._tell, run, now=rfc3339(now))
            self._broadcaster.publish(await self._database.write(tell))
        return len(stranded)

    def _tell(self, stranded: StrandedRun, *, now: str) -> Write[list[EventRecord]]:
        if not (yield from self._stores.hosts.set_told(stranded.run_id, stranded.host)):
            return []
        sentence = absence_sentence(stranded)
        task = yield from self._stores.tasks.get(stranded.task_id)
        if task is not None and task.origin.chat_id and not task.is_subtask:
            origin = task.origin
            message = OutgoingMessage(
                key=f"{stranded.run_id}:host:{stranded.host}:{now}",
                channel=origin.channel,
                app=origin.app,
                chat_id=origin.chat_id,
                reply_to=origin.message_id,
                body=sentence,
                run_id=stranded.run_id,
            )
            yield from self._stores.outbox.add(message, now)
        run = yield from self._stores.runs.get(stranded.run_id)
        if run is None:
            return []
        event = Notice(about="host", text=sentence)
        return (yield from self._stores.events.append_idle(RunIds.of(run), [event], now))


def absence_sentence(stranded: StrandedRun) -> str:
    """Return the sentence about a run that waits for a host."""
    seen = format_moment(stranded.seen) if stranded.seen else "never"
    return (
        f"Waiting for host {stranded.host}, where the files of this session are; it was last seen"
        f" {seen}. To go on without these files: larkspur sessions move {stranded.session_id}"
        " --any-host"
    )

"""The health of a gateway or worker: its database, background tasks and channels."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from internal.agent.app.processes.process_list import ProcessView
from internal.agent.domain.chats import OutboxBacklog
from internal.agent.domain.errors import StoreError
from internal.agent.domain.events.envelope import rfc3339
from internal.channels.web.services import ComponentHealth, Health
from internal.dispatch.dispatcher import RunDispatcher
from larkspur.services import GatewayServices

if TYPE_CHECKING:
    from internal.channels.chat.channel import ChatChannel


class ProcessHealth:
    """Reports the health of a running gateway, or of a worker, which has no channels."""

    def __init__(self, services: GatewayServices, channels: "Sequence[ChatChannel]") -> None:
        self._services = services
        self._channels = channels
        self._since = rfc3339(services.clock.now())
        self._reading = asyncio.Lock()
        self._begun = 0
        """How many reports were begun."""
        self._newest: tuple[int, Health] | None = None
        """The newest report with its number."""

    async def report(self) -> Health:
        """Return the present state. The database is read for it.

        Anybody may ask, as often as wanted: all who wait get the next report that is begun.
        """
        wanted = self._begun + 1
        async with self._reading:
            if self._newest is None or self._newest[0] < wanted:
                self._begun = number = self._begun + 1
                self._newest = number, await self._read()
            return self._newest[1]

    async def _read(self) -> Health:
        services = self._services
        failure, since = services.database.state
        backlogs: dict[str, OutboxBacklog] = {}
        processes: list[ProcessView] = []
        dead_letters = 0
        try:
            await services.database.read(services.stores.events.get_bounds)
            processes = await services.process_list.read()
            for channel in self._channels:
                backlogs[channel.name] = await channel.backlog()
            dead_letters = await services.gateway.dead_letters.count()
        except StoreError as error:
            failure = failure or str(error)
        tasks = {
            state.name: ComponentHealth(not state.failure, state.since, state.failure)
            for state in services.supervisor.states
        }
        dispatcher = _dispatcher_health(services.dispatcher, self._since, processes)
        is_degraded = any(map(any, backlogs.values())) or not all(t.ok for t in tasks.values())
        is_degraded = is_degraded or not (dispatcher.ok or services.dispatcher.is_stopping)
        channels = {
            channel.name: _channel_health(channel, backlogs.get(channel.name))
            for channel in self._channels
        }
        return Health(
            status="failing" if failure else "degraded" if is_degraded else "ok",
            database=ComponentHealth(not failure, since, failure),
            dispatcher=dispatcher,
            tasks=tasks,
            channels=channels,
            lark=channels.get("lark", UNSET),
            processes={
                each.name: ComponentHealth(not each.has_ended, each.started, each.detail)
                for each in processes
            },
            dead_letters=dead_letters,
            call_repairs=services.repairs.by_model(),
        )


def _dispatcher_health(
    dispatcher: RunDispatcher, since: str, processes: Sequence[ProcessView]
) -> ComponentHealth:
    """Return the state of the execution of runs. It fails when no process executes any."""
    workers = [each for each in processes if each.role != "channels" and not each.has_ended]
    if processes and not workers:
        return ComponentHealth(False, since, "no process executes runs; start larkspur worker")
    detail = f"{dispatcher.active_count} active runs"
    return ComponentHealth(not dispatcher.is_stopping, since, detail)


def _channel_health(channel: "ChatChannel", backlog: OutboxBacklog | None) -> ComponentHealth:
    """Return the state of a channel. A lost connection alone does not affect the gateway's."""
    link = channel.link
    details = [f"{link.status}: {link.why}" if link.why else link.status]
    details += [*link.losses, *link.notes]
    if channel.is_led_elsewhere:
        details.append("another gateway processes and sends its messages")
    if channel.problem:
        details.append(f"urgent messages are not sent: {channel.problem}")
    if backlog is not None and backlog.waiting:
        subject = "1 message has" if backlog.waiting == 1 else f"{backlog.waiting} messages have"
        details.append(f"{subject} waited for over a minute to be sent")
    if backlog is not None and backlog.given_up:
        is_one = backlog.given_up == 1
        subject = "1 message" if is_one else f"{backlog.given_up} messages"
        verb = "was" if is_one else "were"
        details.append(f"{subject} of the last day {verb} given up; see `larkspur dead-letters`")
    is_ok = link.status == "connected" and not link.losses and not any(backlog or ())
    return ComponentHealth(is_ok, link.since, "; ".join(details), link.last_event)

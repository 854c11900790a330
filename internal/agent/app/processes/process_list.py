"""The list of the gateways and workers of a database, with the activity of each."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

import msgspec

from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.principals import Principal
from internal.agent.ports.runtime import Clock, Processes, ProcessIdentity
from internal.agent.store.database import Database, Read
from internal.agent.store.runs import ProcessEntry, Role
from internal.agent.store.stores import Stores

_ROLES: dict[Role, str] = {
    "gateway": "gateway",
    "channels": "gateway without runs",
    "worker": "worker",
}


class ProcessView(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway or worker of the database.

    `gateway` has channels and executes runs, `channels` and `worker` do one of them. `host` is the
    name of its host, `runs` how many runs it executes. `leads` names what it alone does, such as
    `lark:cli_a1` and `webhooks`. `lease_age_seconds` is the time since it last renewed its lease.
    `has_ended`: the lease is over, or the process is known to have ended; others remove it soon.
    """

    role: Role
    host: str
    pid: int
    version: str
    started: str
    lease_until: str
    lease_age_seconds: float
    has_ended: bool
    runs: int
    leads: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its role, number and host, such as `worker 4711 on build-2`."""
        return f"{_ROLES[self.role]} {self.pid} on {self.host}"

    @property
    def detail(self) -> str:
        """A description of its activity."""
        runs = f"{self.runs} active run" + "s" * (self.runs != 1)
        leads = [f"leads {' and '.join(self.leads)}"] if self.leads else []
        age = f"{max(round(self.lease_age_seconds), 0)} s ago"
        lease = f"{'ended, ' * self.has_ended}lease renewed {age}"
        return ", ".join([f"larkspur {self.version}", runs, *leads, lease])


class ProcessActivity(NamedTuple):
    """The activity of the processes of a database: the runs of each, and the leaderships."""

    runs: Mapping[str, int]
    leaders: Iterable[tuple[str, str]]
    """Names of leaderships with their owners."""


def view_processes(
    entries: Iterable[ProcessEntry],
    activity: ProcessActivity,
    *,
    processes: Processes,
    lease_seconds: float,
    now: datetime,
) -> list[ProcessView]:
    """Return the entries with the activity of their processes at a time."""
    leaders = list(activity.leaders)
    views = []
    for each in entries:
        identity = ProcessIdentity.parse(each.owner)
        is_dead = identity is not None and processes.is_alive(identity) is False
        left = (datetime.fromisoformat(each.lease_until) - now).total_seconds()
        views.append(
            ProcessView(
                role=each.role,
                host=each.host,
                pid=each.pid,
                version=each.version,
                started=each.started,
                lease_until=each.lease_until,
                lease_age_seconds=round(lease_seconds - left, 1),
                has_ended=is_dead or each.lease_until <= rfc3339(now),
                runs=activity.runs.get(each.owner, 0),
                leads=tuple(name for name, owner in leaders if owner == each.owner),
            )
        )
    return views


class ProcessList:
    """The gateways and workers of the database, seen from this process.

    Args:
        processes: the processes of this machine.
        lease_seconds: the length of a lease, which is the same for all processes.
    """

    def __init__(
        self,
        database: Database,
        stores: Stores,
        clock: Clock,
        *,
        processes: Processes,
        lease_seconds: float,
    ) -> None:
        self._database, self._stores, self._clock = database, stores, clock
        self._processes = processes
        self._lease_seconds = lease_seconds

    async def list_all(self, principal: Principal) -> list[ProcessView]:
        """Return all processes, the earliest started first.

        Raises:
            Forbidden: the principal is not the owner.
        """
        principal.require_owner("read this")
        return await self.read()

    async def read(self) -> list[ProcessView]:
        """Return all processes, for the process itself.

        Raises:
            StoreError: the database cannot be read.
        """
        entries, activity = await self._database.read(self._read)
        return view_processes(
            entries,
            activity,
            processes=self._processes,
            lease_seconds=self._lease_seconds,
            now=self._clock.now(),
        )

    def _read(self) -> Read[tuple[list[ProcessEntry], ProcessActivity]]:
        entries = yield from self._stores.processes.list_all()
        runs = yield from self._stores.processes.count_runs()
        leaders = yield from self._stores.leaderships.list_leaders()
        return entries, ProcessActivity(runs, leaders)

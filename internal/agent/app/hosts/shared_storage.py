"""Proves that a host reaches what all hosts of a database share, when it starts and afterwards."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec

from internal.agent.domain.errors import Conflict, LarkspurError, StoreUnavailable
from internal.agent.store.database import Database, Write
from internal.agent.store.files import HostRow, StorageKind
from internal.agent.store.stores import Stores

CHECK_TIMEOUT_SECONDS = 20.0
"""How long storage may take to answer."""


class StoragePart(msgspec.Struct, frozen=True):
    """Something that all hosts share.

    Attributes:
        kind: what it is.
        identify: returns its id, and gives it the one that is passed if it has none; see
            `Attachments.identify`.
        new: an id for storage that has none.
        refusal: the sentence for a host that has another one.
        may_change: a change while the host works is recorded, and is no problem of the others.
    """

    kind: StorageKind
    identify: Callable[[str], Awaitable[str]]
    new: str
    refusal: str
    may_change: bool = False


class SharedStorage:
    """The storage that a host shares with the other hosts of a database.

    The first host records the ids of its storage; the others must find the same ids.

    Attributes:
        problem: why no run can be started now, "" if it can.
    """

    def __init__(self, database: Database, stores: Stores, parts: Sequence[StoragePart]) -> None:
        self._database = database
        self._stores = stores
        self._parts = parts
        self._found: dict[StorageKind, str] = {}
        self.problem = ""

    async def open(self) -> None:
        """Check all parts, and record the ids that nobody recorded before.

        Raises:
            LarkspurError: the host has other storage than the others, or cannot reach it.
        """
        for part in self._parts:
            await self._check(part, records=True)

    async def check(self) -> None:
        """Check all parts again, and set `problem`.

        Raises:
            LarkspurError: this is the problem.
        """
        try:
            for part in self._parts:
                if part.may_change:
                    await self._follow(part)
                else:
                    await self._check(part, records=False)
        except LarkspurError as error:
            self.problem = str(error)
            raise
        self.problem = ""

    async def _check(self, part: StoragePart, *, records: bool) -> None:
        known = await self._database.read(partial(self._stores.hosts.get_storage, part.kind))
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
                found = await part.identify("" if known or not records else part.new)
        except TimeoutError as error:
            raise StoreUnavailable(f"The {part.kind} of all hosts do not answer.") from error
        if not known and records:
            record = partial(_record, self._stores, part.kind, found)
            known = await self._database.write(record)
        if found != known:
            raise LarkspurError(part.refusal)
        self._found[part.kind] = found

    async def _follow(self, part: StoragePart) -> None:
        found = await part.identify("")
        if found not in {"", self._found[part.kind]}:
            await self._database.write(partial(self._stores.hosts.set_storage, part.kind, found))
            self._found[part.kind] = found


def _record(stores: Stores, kind: StorageKind, marker: str) -> Write[str]:
    """Record an id unless another host was first; return the recorded one."""
    known = yield from stores.hosts.get_storage(kind)
    if not known:
        yield from stores.hosts.set_storage(kind, marker)
    return known or marker


def register_host(
    stores: Stores, wanted: str, *, machine: str, marker: str, folder: str, now: str
) -> Write[str]:
    """Store a host and return its name: the wanted one, else that of its folder or machine.

    `marker` is the id of the folder of its workspaces, "" if hosts share that.

    Raises:
        Conflict: another host has the name, or the folder.
    """
    known = yield from stores.hosts.get_by_marker(marker)
    if known is not None and wanted not in {"", known.name}:
        raise Conflict(
            f"The workspaces in {folder} are those of host {known.name}: set dispatch.host to that"
            " name, or choose another folder (workspaces.folder); for a folder that hosts share,"
            " set workspaces.location to shared on all of them."
        )
    name = wanted or (machine if known is None else known.name)
    holder = yield from stores.hosts.get(name)
    if holder is not None and marker and holder.marker not in {"", marker}:
        if wanted:
            raise Conflict(
                f"Another host of this database is called {name}: give this one another name"
                " (dispatch.host)."
            )
        name = f"{machine}-{marker[:6]}"
    yield from stores.hosts.save(HostRow(name, marker, now))
    return name

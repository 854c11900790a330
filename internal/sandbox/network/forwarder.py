"""Direct connections to permitted hosts, for programs without proxy support.

In the namespace of the command a socket listens on the address and the port of each permitted
host. Its connections are joined to this host by the proxy, which decides whether they may be: an
address gets the same address there, a name gets one of 127.0.0.0/8 and a line in /etc/hosts.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import NamedTuple

from internal.agent.domain.errors import ToolError
from internal.agent.domain.permissions.network import (
    MAX_FORWARDED,
    NetworkAccess,
    forwarded_patterns,
    names_address,
    ports_of,
)
from internal.agent.domain.permissions.rules import HostPattern
from internal.normal_forms.addresses import is_loopback
from internal.sandbox.network.namespace import NetworkNamespace
from internal.sandbox.network.neighbours import listening_ports
from internal.sandbox.network.proxy import (
    CROWDED,
    MAX_CONNECTIONS,
    UNREACHABLE,
    EgressProxy,
    RefusedConnection,
    Site,
)
from internal.sandbox.network.streams import Connections, join, reset

logger = logging.getLogger(__name__)

_LOCALHOST = ("127.0.0.1", "::1")
_NAMES = "127.1.0."
_CLOSED_SECONDS = 0.5
"""Interval of the checks of a port of this machine whose service does not answer."""

_TRIAL_SECONDS = 1.0
"""Time for which the start of a command waits for a service of this machine."""


class ForwardedSite(NamedTuple):
    """A permitted host, and the addresses on which a socket listens for it."""

    site: Site
    addresses: tuple[str, ...]

    @property
    def is_name(self) -> bool:
        """True if the host has a name that must lead to the address."""
        return self.site.host != "localhost" and self.site.host not in self.addresses


def forwarded_sites(access: NetworkAccess) -> list[ForwardedSite]:
    """Return the hosts that the access names explicitly, at most 32. They are forwarded."""
    sites: dict[Site, ForwardedSite] = {}
    names: dict[str, str] = {}
    for pattern in forwarded_patterns(access.allow):
        for port in ports_of(pattern):
            site = Site(pattern.host, port)
            is_new = site not in sites and access.permits(*site)
            if len(sites) < MAX_FORWARDED and is_new:
                sites[site] = ForwardedSite(site, _addresses(pattern, names))
    return [*sites.values()]


def hosts_of(sites: Sequence[ForwardedSite]) -> dict[str, str]:
    """Return the addresses of the names among forwarded hosts."""
    return {one.site.host: one.addresses[0] for one in sites if one.is_name}


def _addresses(pattern: HostPattern, names: dict[str, str]) -> tuple[str, ...]:
    if pattern.host == "localhost":
        return _LOCALHOST
    if names_address(pattern):
        return (pattern.host,)
    return (names.setdefault(pattern.host, f"{_NAMES}{len(names) + 1}"),)


class Forwarder:
    """Forwards hosts into the namespace of a command.

    Args:
        sites: the hosts.
        proxy: decides about each connection, and opens it.
    """

    def __init__(self, sites: Sequence[ForwardedSite], proxy: EgressProxy) -> None:
        self._sites = sites
        self._proxy = proxy
        self.is_crowded = False
        """True if a connection was broken since too many were open."""

    @contextlib.asynccontextmanager
    async def run(self, own: NetworkNamespace) -> AsyncGenerator[None]:
        """Forward within the block; all connections end with it."""
        async with Connections() as connections, contextlib.AsyncExitStack() as stack:
            followed: list[asyncio.Task[None]] = []
            known: list[asyncio.Event] = []
            for each in self._sites:
                listen = partial(self._listen, each, own, connections)
                if is_loopback(each.site.host) and self._proxy.allows_private(each.site):
                    known.append(asyncio.Event())
                    followed.append(asyncio.create_task(self._follow(each.site, listen, known[-1])))
                else:
                    await stack.enter_async_context(listen())
            try:
                for event in known:
                    await event.wait()
                yield
            finally:
                for task in followed:
                    task.cancel()
                if followed:
                    await asyncio.wait(followed)

    async def _follow(
        self,
        site: Site,
        listen: Callable[..., AbstractAsyncContextManager[None]],
        known: asyncio.Event,
    ) -> None:
        """Listen while a service of this machine answers: a closed port refuses connections.

        `known` is set when it is known whether the service answers.
        """
        try:
            while True:
                if await self._answers(site):
                    closed = asyncio.Event()
                    async with listen(closed):
                        known.set()
                        await closed.wait()
                known.set()
                await asyncio.sleep(_CLOSED_SECONDS)
        finally:
            known.set()

    async def _answers(self, site: Site) -> bool:
        """Return True if a service of this machine takes connections.

        The table of the kernel is checked first: a service that accepts a single connection would
        lose it. Addresses that the firewall of the machine redirects are not in the table.
        """
        if site.port in await asyncio.to_thread(listening_ports, "self", site.host):
            return True
        try:
            async with asyncio.timeout(_TRIAL_SECONDS), self._proxy.open(site):
                return True
        except (RefusedConnection, TimeoutError):
            return False

    @contextlib.asynccontextmanager
    async def _listen(
        self,
        forwarded: ForwardedSite,
        own: NetworkNamespace,
        connections: Connections,
        closed: asyncio.Event | None = None,
    ) -> AsyncGenerator[None]:
        """Listen for a host on its addresses in a namespace.

        A port that a program of the command has taken is left to it.
        """
        async with contextlib.AsyncExitStack() as stack:
            for address in forwarded.addresses:
                try:
                    listener = await own.listen(forwarded.site.port, address)
                except ToolError as error:
                    facts = {"site": str(forwarded.site), "reason": str(error)}
                    logger.info("a host is not forwarded to a command", extra=facts)
                    continue
                handle = partial(self._connect, forwarded.site, closed)
                await stack.enter_async_context(connections.accept(listener, handle))
            yield

    async def _connect(
        self,
        site: Site,
        closed: asyncio.Event | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Join a connection of the command to a host, or break it."""
        try:
            async with self._proxy.open(site) as target:
                if not await join((reader, writer), target):
                    reset(writer)
        except RefusedConnection as refusal:
            reset(writer)
            if refusal.status == CROWDED and not self.is_crowded:
                self.is_crowded = True
                facts = {"site": str(site), "limit": MAX_CONNECTIONS}
                logger.warning("a command has too many connections open", extra=facts)
            if refusal.status == UNREACHABLE and closed is not None:
                closed.set()

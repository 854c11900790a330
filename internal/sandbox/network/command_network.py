"""The network of one command: its proxy, the hosts that are forwarded, and its neighbours."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count

from internal.agent.domain.permissions.network import NetworkAccess
from internal.sandbox.network.forwarder import Forwarder, forwarded_sites, hosts_of
from internal.sandbox.network.namespace import NetworkNamespace
from internal.sandbox.network.neighbours import reach_neighbours
from internal.sandbox.network.proxy import PORT, EgressProxy, Resolver, proxy_variables, resolve

_LOOPBACK = frozenset({"127.0.0.1", "::1"})


class CommandNetwork:
    """Connects a command to the hosts and servers that it may reach.

    Args:
        access: the hosts.
        private: let them have addresses of this machine and of private networks.
        neighbours: ports of the running commands whose servers it reaches, by one of their
            processes.
        resolver: resolves the names of hosts.
    """

    def __init__(
        self,
        access: NetworkAccess,
        *,
        private: bool = False,
        neighbours: Mapping[int, set[int]],
        resolver: Resolver = resolve,
    ) -> None:
        self._neighbours = neighbours
        self._has_hosts = bool(access.allow)
        self._proxy = EgressProxy(access, private=private, resolver=resolver)
        sites = forwarded_sites(access)
        self._forwarder = Forwarder(sites, self._proxy)
        forwarded = {one.site.port for one in sites if _LOOPBACK & {*one.addresses}}
        self._port = next(port for port in count(PORT) if port not in forwarded)
        self.hosts: Mapping[str, str] = hosts_of(sites)
        """The addresses of names, for /etc/hosts."""
        self.taken: frozenset[int] = frozenset({self._port, *forwarded})
        """Ports of 127.0.0.1 and ::1 that no other command of the session may reach."""

    @property
    def is_needed(self) -> bool:
        """True if the command reaches anything: it starts when its network is ready."""
        return self._has_hosts or bool(self._neighbours)

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of the command."""
        return proxy_variables(self._port) if self._has_hosts else {}

    @property
    def refused(self) -> tuple[str, ...]:
        """The sites that the command tried to reach and may not, as host:port."""
        return tuple(self._proxy.refused)

    @property
    def refused_addresses(self) -> tuple[str, ...]:
        """The sites whose host is allowed, and whose address is private."""
        return tuple(self._proxy.refused_addresses)

    @property
    def forbidden(self) -> tuple[str, ...]:
        """The sites whose host is allowed, and whose address is never reached."""
        return tuple(self._proxy.forbidden)

    @property
    def is_crowded(self) -> bool:
        """True if the command had more connections open than it may."""
        return self._forwarder.is_crowded

    @asynccontextmanager
    async def connect(self, own: NetworkNamespace) -> AsyncGenerator[None]:
        """Connect the namespace of the command within the block.

        Raises:
            ToolError: it cannot be entered.
        """
        async with AsyncExitStack() as stack:
            if self._has_hosts:
                listener = await own.listen(self._port)
                await stack.enter_async_context(self._proxy.serve(listener))
                await stack.enter_async_context(self._forwarder.run(own))
            await stack.enter_async_context(reach_neighbours(own, self._neighbours, {*self.taken}))
            yield


def hosts_file(own: str, addresses: Mapping[str, str]) -> bytes:
    """Return the content of /etc/hosts for a command.

    Args:
        own: the content for all commands.
        addresses: the addresses of further names.
    """
    lines: Iterable[str] = (f"{address} {name}\n" for name, address in addresses.items())
    return f"{own}{''.join(lines)}".encode("ascii")

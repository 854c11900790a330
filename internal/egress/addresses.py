"""Hosts are resolved once, and all their addresses are checked before one is connected to.

A name can so not resolve differently between the check and the connection (DNS rebinding).
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from internal.normal_forms.addresses import address_refusal

Resolver = Callable[[str, int], Awaitable[list[str]]]
"""Returns all numeric addresses of a host; raises OSError if there is none."""

_MAX_ADDRESSES = 4


class AddressRefused(Exception):
    """A host has an address that may not be connected to. The message is a clause."""


class UnknownHost(OSError):
    """A host has no address."""


async def resolve_host(host: str, port: int) -> list[str]:
    """Return the addresses of a host from the system resolver.

    Raises:
        OSError: the name has no address.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class AddressCheck:
    """Decides which addresses a client may connect to.

    Args:
        private: permit this machine and its networks; for trusted set-ups only.
        resolver: resolves host names.
    """

    def __init__(self, *, private: bool = False, resolver: Resolver = resolve_host) -> None:
        self._private = private
        self._resolve = resolver

    async def resolve(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host to connect to; a single forbidden one rejects the host.

        Raises:
            AddressRefused: one is forbidden.
            UnknownHost: there is none.
        """
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise UnknownHost("there is no such host") from error
        for address in found:
            if reason := address_refusal(address, private=self._private):
                raise AddressRefused(reason)
        if not found:
            raise UnknownHost("there is no such host")
        return list(dict.fromkeys(found))[:_MAX_ADDRESSES]

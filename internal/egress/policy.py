"""The servers that a client may reach, and the route to them."""

import ssl
from typing import NamedTuple

from internal.egress.addresses import AddressCheck, Resolver, resolve_host
from internal.egress.certificates import public_certificates, system_certificates
from internal.egress.proxies import NO_PROXIES, Proxies, load_proxies


class EgressPolicy(NamedTuple):
    """Proxies, trusted certificates and permitted addresses of a client.

    `tls` is what aiohttp calls `ssl`. Without `addresses` all are permitted: the settings name the
    servers. A policy with `addresses` has no proxies, which would resolve names themselves.
    """

    tls: ssl.SSLContext | bool = True
    proxies: Proxies = NO_PROXIES
    addresses: AddressCheck | None = None


def provider_policy() -> EgressPolicy:
    """Return the policy for providers of models, which the environment's proxies lead to.

    Reads files.
    """
    return EgressPolicy(system_certificates(), load_proxies())


def webhook_policy() -> EgressPolicy:
    """Return the policy for webhooks: any address of the settings, without a proxy. Reads files."""
    return EgressPolicy(public_certificates())


def checked_policy(
    *, private: bool, resolver: Resolver = resolve_host, tls: ssl.SSLContext | None = None
) -> EgressPolicy:
    """Return the policy for addresses that models and people choose. Reads files.

    `private` and `resolver` are the arguments of `AddressCheck`; `tls` verifies servers in place of
    the system's certificates.
    """
    check = AddressCheck(private=private, resolver=resolver)
    return EgressPolicy(tls or system_certificates(), addresses=check)

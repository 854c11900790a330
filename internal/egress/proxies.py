"""HTTP proxies on the way to servers.

Those of the environment are as programs on Linux expect: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`
and `NO_PROXY`, in either case.
"""

import ipaddress
from collections.abc import Mapping

from internal.normal_forms.addresses import is_loopback, parse_ip, reached_host
from internal.normal_forms.urls import split_url


class Proxies:
    """The HTTP proxies of an environment. Hosts of this machine are reached without them.

    `NO_PROXY` lists hosts, which include their subdomains, networks such as 10.0.0.0/8, or `*`.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        """`variables` are as `urllib.request.getproxies` returns them, such as `https` and `no`."""
        names = [name.strip().lower() for name in variables.get("no", "").split(",")]
        self._excluded = [name for name in names if name]
        self._proxies = {
            scheme: variables[scheme]
            for scheme in ("http", "https", "all")
            if variables.get(scheme) and "*" not in self._excluded
        }

    def find(self, scheme: str, host: str, port: int) -> str | None:
        """Return the URL of the proxy on the way to a server, or None without a proxy.

        Raises:
            ValueError: the proxy is no HTTP proxy; the message names the remedy.
        """
        proxy = self._proxies.get(scheme) or self._proxies.get("all")
        if proxy is None or is_loopback(host):
            return None
        host = reached_host(host.lower())
        is_excluded = any(_matches(name, host, port) for name in self._excluded)
        return None if is_excluded else _checked(proxy)


NO_PROXIES = Proxies({})


def load_proxies() -> Proxies:
    """Return the proxies of the environment of this process."""
    from urllib.request import getproxies  # noqa: PLC0415 - slow, and only for a provider

    return Proxies(getproxies())


def _checked(proxy: str) -> str:
    url = proxy if "://" in proxy else f"http://{proxy}"
    parts = split_url(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        raise ValueError(
            f"The proxy {where} of the environment is not supported: set HTTPS_PROXY to an HTTP"
            " proxy, or list the hosts that need none in NO_PROXY."
        )
    return url


def _matches(name: str, host: str, port: int) -> bool:
    if "/" in name:
        try:
            return parse_ip(host) in ipaddress.ip_network(name, strict=False)
        except ValueError:  # a name, or no network
            return False
    name = name.removeprefix("*").removeprefix(".")
    bare = name.removeprefix("[").replace("]", "") if name.startswith("[") else name
    return (
        bare in {host, f"{host}:{port}"}
        or host.endswith(f".{name}")
        or f"{host}:{port}".endswith(f".{name}")
    )

"""Hosts of URLs, matched on the text of the URL alone.

The fetcher checks where an address leads when it connects; a rule only decides which hosts need no
approval. An allow rule is strict about spelling, a deny rule considers every possible reading.
"""

import re
from typing import NamedTuple
from urllib.parse import unquote

from internal.agent.domain.permissions.rules import HostPattern
from internal.agent.domain.text import find_invisible
from internal.normal_forms.addresses import reached_host

_DEFAULT_PORTS = {"http": 80, "https": 443}
_URL = (
    r"(?i)(?P<scheme>https?)://(?P<host>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(?::(?P<port>\d{1,5}))?"
    r"(?:[/?#][^\\\s]*)?"
)


class UrlSite(NamedTuple):
    """The hosts that a URL may name. The default port of the scheme is None.

    When `exact` is false, URL parsers disagree about the spelling: `hosts` then holds every host
    that one of them may see, and "" for a host that cannot be determined.
    """

    hosts: tuple[str, ...]
    port: int | None
    exact: bool


def parse_url(url: str) -> UrlSite:
    """Return the site of a URL. Never raises."""
    match = re.fullmatch(_URL, url)
    if match and not find_invisible(url):
        scheme, port = match["scheme"].lower(), match["port"]
        is_default = not port or int(port) == _DEFAULT_PORTS[scheme]
        return UrlSite((match["host"].lower(),), None if is_default else int(port), exact=True)
    loose = "".join(char for char in url if char > " ")
    readings = (loose, unquote(loose))
    hosts = {_loose_host(text) for text in (*readings, *(r.replace("\\", "/") for r in readings))}
    return UrlSite(tuple(sorted(hosts)), None, exact=False)


def _loose_host(url: str) -> str:
    authority = re.sub(r"^[^:/]*:?/*", "", url)
    host = re.split(r"[/?#]", authority, maxsplit=1)[0].rpartition("@")[2]
    if bracketed := re.fullmatch(r"\[([^\[\]]*)\](?::\d*)?", host):
        return reached_host(bracketed[1].lower())
    try:
        return host.partition(":")[0].encode("idna").decode().lower().rstrip(".")
    except UnicodeError:
        return ""


def allows_site(pattern: HostPattern, site: UrlSite) -> bool:
    """Return True if an allow pattern covers the site. Ambiguous spellings are never covered."""
    return site.exact and pattern.port == site.port and matches_host(pattern, site.hosts[0])


def denies_site(pattern: HostPattern, site: UrlSite) -> bool | None:
    """Return True if a deny pattern matches the site, None if that cannot be determined.

    A pattern without a port matches every port.
    """
    if any(matches_host(pattern, host) for host in site.hosts):
        return pattern.port in {None, site.port} or not site.exact
    return None if "" in site.hosts else False


def matches_host(pattern: HostPattern, host: str) -> bool:
    """Return True if a pattern names a host in lower case, on any port."""
    if pattern.subdomains and not pattern.host:
        return True
    host = reached_host(host)
    return host.endswith(f".{pattern.host}") if pattern.subdomains else host == pattern.host


def suggest_host_rule(tool: str, site: UrlSite) -> str:
    """Return the narrowest rule that allows the tool on this site, or "" if there is none."""
    port = f":{site.port}" if site.port is not None else ""
    return f"{tool}({site.hosts[0]}{port})" if site.exact else ""

"""Network access to Lark's servers: proxy, certificates, and the log ids of calls."""

import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from internal.agent.domain.secrets import mask_secrets
from internal.agent.domain.text import truncate_line
from internal.channels.chat.transport import TransportUnavailable
from internal.egress.certificates import public_and_own_certificates, public_certificates
from internal.egress.policy import EgressPolicy
from internal.egress.proxies import Proxies

KEEPALIVE_SECONDS = 30.0
"""Time that an unused connection for REST stays open."""
_LOG_ID_HEADER = "x-tt-logid"
_LOG_ID = re.compile(r"[0-9A-Za-z_-]{1,100}")


class LarkNetwork(NamedTuple):
    """Network settings for Lark's servers, for REST, discovery and the websocket alike.

    `proxy` is the URL of an HTTP proxy, or "". Loopback hosts and hosts that match `no_proxy` are
    reached without it. `ca_file` is a PEM file with certificates that are trusted in addition to
    the certificates of certifi and the system.
    """

    proxy: str = ""
    no_proxy: tuple[str, ...] = ()
    ca_file: Path | None = None

    def __repr__(self) -> str:
        """Return a representation without the proxy's password."""
        return f"LarkNetwork({_address(self.proxy) if self.proxy else 'direct'})"

    def proxy_for(self, url: str) -> str | None:
        """Return the URL of the proxy for a request, or None."""
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme in {"https", "wss"} else 80)
        return self._proxies.find(parts.scheme, parts.hostname or "", port)

    @property
    def _proxies(self) -> Proxies:
        return Proxies({"all": self.proxy, "no": ",".join(self.no_proxy)})

    def tls_context(self) -> ssl.SSLContext:
        """Return a TLS context that verifies servers. Must not be changed. Reads files.

        Raises:
            TransportUnavailable: `ca_file` cannot be read or contains no certificate.
        """
        if self.ca_file is None:
            return public_certificates()
        try:
            return public_and_own_certificates(self.ca_file)
        except (OSError, ssl.SSLError) as error:
            reason = getattr(error, "strerror", None) or "it contains no PEM certificate"
            raise TransportUnavailable(
                f"channels.lark.ca_file {self.ca_file} cannot be used: {reason}"
            ) from error

    def policy(self) -> EgressPolicy:
        """Return the way of HTTP requests; reads files and raises as `tls_context`."""
        return EgressPolicy(self.tls_context(), self._proxies)

    def explain(self, error: BaseException, url: str) -> str:
        """Return why a request failed, and which setting may be wrong."""
        proxy = self.proxy_for(url)
        via = f" (through the proxy {_address(proxy)})" if proxy else ""
        for cause in _causes(error):
            # only the error of OpenSSL has it, not the one that aiohttp makes of it
            if reason := getattr(cause, "verify_message", ""):
                return (
                    f"the certificate of {urlsplit(url).hostname} is not trusted{via}:"
                    f" {reason}; if a proxy inspects TLS, set channels.lark.ca_file"
                    " to a file with its CA certificate"
                )
            # of websockets and of aiohttp
            names = {kind.__name__ for kind in type(cause).__mro__}
            if not names.isdisjoint({"ProxyError", "ClientHttpProxyError"}):
                return f"the proxy refused{via}: {_line(cause)}; check channels.lark.proxy"
        return _line(error) + via


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _address(proxy: str) -> str:
    return urlsplit(proxy).netloc.rpartition("@")[2]


def _line(error: BaseException) -> str:
    return truncate_line(mask_secrets(f"{type(error).__name__} {error}"), 200)


def read_log_id(headers: Mapping[str, str]) -> str:
    """Return Lark's id of a call from the headers of its response, "" without one.

    `headers` must compare names case-insensitively, as the headers of aiohttp and websockets do.
    """
    return as_log_id(headers.get(_LOG_ID_HEADER))


def as_log_id(value: object) -> str:
    """Return a value if it can be a log id, else ""."""
    return value if isinstance(value, str) and _LOG_ID.fullmatch(value) else ""


def with_log_id(sentence: str, log_id: str) -> str:
    """Return a sentence about a failed call with Lark's id of the call, if it is known."""
    return f"{sentence} (log id {log_id})" if log_id else sentence

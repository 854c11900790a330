"""Failures of requests over aiohttp: exceptions as kinds, with the reason of the system."""

import errno
import os
import ssl

import aiohttp

from internal.egress.addresses import UnknownHost
from internal.egress.messages import Failure, FailureKind

_LARGE_HEAD = ("Too many headers", "Got more than")

# the first that fits counts: many are kinds of OSError, and of one another
_KINDS: tuple[tuple[type[Exception], FailureKind], ...] = (
    (aiohttp.ClientConnectorCertificateError, "certificate"),
    (aiohttp.ClientHttpProxyError, "proxy"),
    (aiohttp.ClientProxyConnectionError, "proxy"),
    (aiohttp.ClientSSLError, "no_tls"),
    (ssl.SSLError, "no_tls"),
    (aiohttp.ClientConnectorDNSError, "unknown_host"),
    (UnknownHost, "unknown_host"),
    (aiohttp.ClientConnectorError, "unreachable"),
    (TimeoutError, "silent"),
    (aiohttp.InvalidURL, "unusable"),
    (aiohttp.ClientPayloadError, "broken_off"),
    (aiohttp.ClientResponseError, "not_http"),
)


def explain(error: Exception) -> Failure:
    """Return the kind of a failure, and its reason: the message of the system, or a clause."""
    kind: FailureKind = "closed"
    kind = next((found for cause, found in _KINDS if isinstance(error, cause)), kind)
    match error:
        case aiohttp.ClientConnectorCertificateError():
            inner = error.certificate_error
            return Failure(kind, getattr(inner, "verify_message", "") or str(inner))
        case aiohttp.ClientConnectorError():
            is_refused = kind == "unreachable" and error.os_error.errno == errno.ECONNREFUSED
            return Failure("refused" if is_refused else kind, _system_reason(error.os_error))
        case aiohttp.InvalidURL():
            return Failure(kind, error.description or "")  # of an unusable proxy
        case aiohttp.ClientPayloadError():
            return Failure(kind, "the answer breaks off")
        case aiohttp.ClientResponseError():
            if kind == "not_http" and error.message.startswith(_LARGE_HEAD):
                kind = "large_head"
            status = f"{error.status} {error.message}"
            return Failure(kind, status if kind == "proxy" else "this is not HTTP")
        case _:
            return Failure(kind, _system_reason(error) if isinstance(error, OSError) else "")


def _system_reason(error: OSError) -> str:
    # OpenSSL has other numbers, and the resolver has negative ones
    if error.errno is None or error.errno < 0 or isinstance(error, ssl.SSLError):
        return error.strerror or ""
    return os.strerror(error.errno)

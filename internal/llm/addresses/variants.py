"""Likely corrections of an entered address, and the addresses in the registry. No I/O."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from internal.model_providers.provider import Anthropic, OpenAICompatible, Provider
from internal.model_providers.registry import PROVIDERS
from internal.normal_forms.addresses import is_loopback
from internal.normal_forms.urls import split_url

WireFormat = Literal["openai", "anthropic"]
"""Chat Completions of OpenAI, or the Messages API of Anthropic."""
LOCAL_PORTS = (11434, 8000, 8080, 1234, 30000, 4000)
"""Usual ports of Ollama, vLLM, llama.cpp, LM Studio, SGLang and LiteLLM."""

_ANTHROPIC = "https://api.anthropic.com"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_VERSION = re.compile(r"/(?:v\d+\w*|openai)$")
# whole endpoints of both formats and of Ollama, as documentation shows them
_ENDPOINT = re.compile(
    r"/(?:chat/completions|completions|responses|embeddings|messages(?:/count_tokens)?|models"
    r"|api/(?:tags|chat|generate|version))$"
)
_OPENAI_PATHS = ("/v1", "/api/v1", "/openai/v1", "/api", "")
_ANTHROPIC_PATHS = ("", "/anthropic", "/api/anthropic", "/api")


class Place(NamedTuple):
    """The parts of an address. A `port` of None is the default of the scheme."""

    scheme: str
    host: str
    port: int | None
    path: str

    @property
    def origin(self) -> str:
        """The address without its path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (f":{self.port}" if self.port is not None else "")

    @property
    def address(self) -> str:
        """The address, without a slash at its end."""
        return f"{self.origin}{self.path}"


def wire_format(provider: Provider) -> WireFormat | None:
    """Return the wire format of a provider's servers; None where Larkspur sends no keys itself."""
    if isinstance(provider, Anthropic):
        return "anthropic"
    return "openai" if isinstance(provider, OpenAICompatible) else None


def addresses_of(provider: Provider) -> tuple[str, ...]:
    """Return the addresses that the registry lists for a provider, its default one first."""
    first = getattr(provider, "base_url", _ANTHROPIC if provider.name == "anthropic" else "")
    regions: Sequence[str] = getattr(provider, "regions", ())
    return tuple(dict.fromkeys(one.rstrip("/") for one in (first, *regions) if one))


def listed_provider(
    address: str, provider: Provider, registry: Sequence[Provider] = PROVIDERS
) -> Provider | None:
    """Return the provider that the registry lists the host of an address for, or None.

    The given one is preferred: a host may serve both wire formats.
    """
    host = place_of(address).host
    return next(
        (
            one
            for one in (provider, *registry)
            if host in {place_of(known).host for known in addresses_of(one)}
        ),
        None,
    )


def place_of(address: str) -> Place:
    """Return the parts of an address; its query, fragment and login are left out.

    An address without a scheme gets http where that is usual: for this machine, IP addresses and
    unusual ports.

    Raises:
        ValueError: it is no HTTP address.
    """
    text = address if _SCHEME.match(address) else f"//{address.lstrip('/')}"
    parts = split_url(text)
    host, port = (parts.hostname or "").lower(), parts.port
    scheme = parts.scheme.lower() or _usual_scheme(host, port)
    if scheme not in {"http", "https"} or not host or not host.isprintable() or " " in text:
        raise ValueError("must be a URL such as https://example.org")
    if port == {"http": 80, "https": 443}[scheme]:
        port = None
    return Place(scheme, host, port, re.sub(r"/{2,}", "/", parts.path).rstrip("/"))


def has_scheme(address: str) -> bool:
    """Return True if an address says how its server is reached."""
    return _SCHEME.match(address) is not None


def path_variants(place: Place, wire: WireFormat, known: Sequence[str]) -> Iterator[str]:
    """Yield addresses at the same server that may be meant, the most likely first.

    `known` are addresses of the registry; those at the same host are among them.
    """
    base = _ENDPOINT.sub("", place.path)
    own = (place_of(one) for one in known)
    listed = [one.path for one in own if one.host == place.host and place.port == one.port]
    if wire == "anthropic":  # the client adds /v1/messages
        paths = [base.removesuffix("/v1"), base, *listed, *_ANTHROPIC_PATHS]
    else:
        longer = [] if _VERSION.search(base) and base != "/openai" else [f"{base}/v1"]
        cut = re.sub(r"(/v\d+\w*)/.*$", r"\1", base)
        paths = [base, *longer, cut, *listed, *_OPENAI_PATHS]
        paths.append(base.removesuffix("/v1"))
    for path in dict.fromkeys(paths):
        yield place._replace(path=path).address


def server_variants(place: Place, ports: Sequence[int]) -> Iterator[tuple[Place, bool]]:
    """Yield other servers of the same host that may be meant, each with whether to send the key.

    A key goes where it was entered: not over a connection that is less protected, and not to
    another program that listens beside.
    """
    local = is_loopback(place.host)
    other = "http" if place.scheme == "https" else "https"
    yield place._replace(scheme=other), other == "https" or local
    if place.port is not None:
        yield place._replace(port=None), place.scheme == "https"
        if place.scheme == "http":
            yield place._replace(scheme="https", port=None), True
    for port in ports if local else ():
        if port != place.port:
            yield place._replace(scheme="http", port=port), False


def _usual_scheme(host: str, port: int | None) -> str:
    is_name = "." in host and re.search(r"[a-z]", host) is not None and ":" not in host
    return "https" if is_name and port in {None, 443, 8443} else "http"

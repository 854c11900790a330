"""Tries an address and a key in order, and reports the result in sentences for people."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from internal.agent.domain.secrets import mask_secrets
from internal.llm.addresses.sentences import advice_on, why
from internal.llm.addresses.variants import (
    LOCAL_PORTS,
    Place,
    WireFormat,
    addresses_of,
    has_scheme,
    listed_provider,
    path_variants,
    place_of,
    server_variants,
    wire_format,
)
from internal.llm.server_answers import AddressAnswer
from internal.llm.transport import ApiKey
from internal.model_providers.registry import PROVIDERS, Provider, find_providers_of_key
from internal.settings.entered_text import clean_address
from internal.settings.messages import plain

if TYPE_CHECKING:
    from internal.llm.addresses.prober import AddressProber

MAX_ADDRESSES = 16
"""At most so many addresses are tried, with two small requests each."""
CHECK_SECONDS = 25.0
_OTHER_WIRE: dict[WireFormat, WireFormat] = {"openai": "anthropic", "anthropic": "openai"}
_WIRE_NAMES: dict[WireFormat, str] = {
    "openai": "OpenAI's Chat Completions",
    "anthropic": "Anthropic's Messages API",
}
_MAX_OTHER_PATHS = 3
_MAX_SHOWN = 4


class AddressReport(NamedTuple):
    """Result of a check.

    Attributes:
        sentence: what was found, with the address that works if it is another one.
        advice: what to do where no address works; "" if the sentence says it.
        base_url: the address to set instead of the entered one, which was tried; else "".
        provider: the name of the provider to choose with it, if it is not the entered one; else "".
        models: those that the server lists, None if it lists none.
        windows: their context windows in tokens, as far as the list has them.
    """

    state: Literal["ok", "fail"]
    sentence: str
    advice: str = ""
    base_url: str = ""
    provider: str = ""
    models: tuple[str, ...] | None = None
    windows: Mapping[str, int] = {}


class AddressRequest(NamedTuple):
    """An address and a key as they were entered.

    Attributes:
        address: None is the provider's own.
        key_place: where the key is, for sentences, such as ANTHROPIC_API_KEY.
        setting: where the address is set, for sentences.
        ports: other ports at which servers of this machine are looked for.
        registry: the providers whose hosts may get the key of theirs.
        seconds: how long all requests may take together.
    """

    provider: Provider
    address: str | None
    key: str
    key_place: str = "llm.api_key"
    setting: str = "llm.base_url"
    ports: Sequence[int] = LOCAL_PORTS
    registry: Sequence[Provider] = PROVIDERS
    seconds: float = CHECK_SECONDS


class _Found(NamedTuple):
    address: str
    wire: WireFormat
    answer: AddressAnswer
    with_key: bool


async def check_address(request: AddressRequest) -> AddressReport:
    """Try an address and a key; where they do not work, try likely corrections.

    The key is sent to the entered host and to the hosts that the registry lists for its provider.
    No redirect is followed with it. No model is asked for a reply.
    """
    report = await _check(request)
    return report._replace(
        sentence=mask_secrets(report.sentence), advice=mask_secrets(report.advice)
    )


async def list_server_models(request: AddressRequest) -> AddressReport:
    """Ask the server at an address for its models; a failed report gives the reason."""
    wire = wire_format(request.provider)
    title = request.provider.title
    if wire is None:
        return AddressReport("fail", f"{title} lists no models.")
    try:
        place = _entered_place(request)
    except ValueError:
        return _not_an_address(request.address or "")
    async with _open(request) as prober:
        answer = await prober.list_models(place.address, wire, with_key=True)
    if answer.models is not None:
        return AddressReport(
            "ok",
            f"{title} lists {len(answer.models)} models.",
            models=answer.models,
            windows=answer.windows,
        )
    # the whole check says what is wrong, and names the address that has the list
    report = await check_address(request)
    if report.state == "fail" or report.models is not None:
        return report
    return AddressReport("fail", f"{title} does not list its models at {place.address}.")


@contextlib.asynccontextmanager
async def _open(request: AddressRequest) -> AsyncGenerator["AddressProber"]:
    from internal.llm.addresses.prober import AddressProber  # noqa: PLC0415 - imports aiohttp

    header = getattr(request.provider, "key_header", "authorization")
    async with AddressProber(ApiKey(request.key), key_header=header) as prober:
        yield prober


async def _check(request: AddressRequest) -> AddressReport:
    provider, wire = request.provider, wire_format(request.provider)
    if wire is None:
        return AddressReport("ok", f"{provider.title} is not tested.")
    if request.key and not ApiKey(request.key).usable:
        return AddressReport(
            "fail", f"The API key in {request.key_place} contains invalid characters."
        )
    try:
        place = _entered_place(request)
    except ValueError:
        return _not_an_address(request.address or "")
    async with _open(request) as prober:
        return await _Check(request, place, wire, prober).run()


def _entered_place(request: AddressRequest) -> Place:
    if request.address is None:
        return place_of(addresses_of(request.provider)[0])
    return place_of(clean_address(request.address).value)


def _not_an_address(text: str) -> AddressReport:
    return AddressReport(
        "fail", f"“{plain(text)}” is no address of a server, such as https://example.org/v1."
    )


class _Check:
    """One check. `known` are the registry's addresses of the provider that the host belongs to."""

    def __init__(
        self, request: AddressRequest, place: Place, wire: WireFormat, prober: "AddressProber"
    ) -> None:
        self._request, self._place, self._wire, self._prober = request, place, wire, prober
        listed = listed_provider(place.address, request.provider, request.registry)
        self._listed = listed
        self._known = addresses_of(listed) if listed is not None else ()
        self._tried: list[tuple[str, WireFormat]] = []

    async def run(self) -> AddressReport:
        """Return the working address. Findings after the time limit are left out."""
        cause, found = AddressAnswer("silent"), None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._request.seconds):
                cause = await self._try(self._place.address, with_key=True) or cause
                if cause.kind == "key":
                    return await self._rejected(cause)
                if not cause.is_served:
                    found = await self._search(cause)
        if cause.is_served:
            return self._works(cause)
        return self._fails(cause) if found is None else self._suggest(found, cause)

    async def _try(
        self, address: str, wire: WireFormat | None = None, *, with_key: bool
    ) -> AddressAnswer | None:
        """Try an address; None if it was tried before, or too many were."""
        wire = wire or self._wire
        if (address, wire) in self._tried or len(self._tried) >= MAX_ADDRESSES:
            return None
        self._tried.append((address, wire))
        return await self._prober.try_address(address, wire, with_key=with_key)

    async def _search(self, cause: AddressAnswer) -> _Found | None:
        """Return the first other address at which a model server answers, or None."""
        if cause.kind == "redirect":
            return await self._follow(cause.detail)
        if cause.is_heard and cause.kind != "failing":
            return await self._search_paths()
        return await self._search_servers()

    async def _search_paths(self) -> _Found | None:
        found = await self._first(self._place, self._wire, with_key=True)
        if found is not None:
            return found
        other = _OTHER_WIRE[self._wire]
        found = await self._first(self._place, other, with_key=True, limit=_MAX_OTHER_PATHS)
        if found is not None or self._place.scheme == "https":
            return found
        return await self._first(self._place._replace(scheme="https"), self._wire, with_key=True)

    async def _search_servers(self) -> _Found | None:
        for known in self._known:  # another region may be reached from here
            if place_of(known).host != self._place.host:
                answer = await self._try(known, with_key=True)
                if answer is not None and answer.is_served:
                    return _Found(known, self._wire, answer, with_key=True)
        if self._request.address is None:
            return None
        for place, with_key in server_variants(self._place, self._request.ports):
            found = await self._first(place, self._wire, with_key=with_key, limit=_MAX_OTHER_PATHS)
            if found is not None:
                return found
        return None

    async def _first(
        self, place: Place, wire: WireFormat, *, with_key: bool, limit: int = MAX_ADDRESSES
    ) -> _Found | None:
        """Return the first path of a server at which a model server answers, or None."""
        for address in list(path_variants(place, wire, self._known))[:limit]:
            answer = await self._try(address, wire, with_key=with_key)
            if answer is not None and answer.is_served:
                return _Found(address, wire, answer, with_key=with_key)
            if answer is not None and not answer.is_heard:
                return None  # no path of this server answers
        return None

    async def _follow(self, target: str) -> _Found | None:
        """Try where a redirect leads, with the key only to hosts that may have it."""
        place = place_of(target)
        is_same = place.host == self._place.host
        is_protected = place.scheme == "https" or self._place.scheme == "http"
        is_listed = place.host in {place_of(known).host for known in self._known}
        with_key = is_protected and (is_same or is_listed)
        return await self._first(place, self._wire, with_key=with_key)

    async def _rejected(self, answer: AddressAnswer) -> AddressReport:
        """Look for another region of the provider that takes the key."""
        address = self._place.address
        request, reason = self._request, f": {answer.detail}" if answer.detail else "."
        title = (self._listed or request.provider).title
        if not request.key:
            return AddressReport(
                "fail",
                f"{title} wants an API key at {address} ({answer.status}).",
                _set_key(request),
            )
        for known in self._known:
            if place_of(known).host == self._place.host:
                continue
            other = await self._try(known, with_key=True)
            if other is not None and other.is_served and other.kind != "key":
                sentence = (
                    f"{title} rejects the API key in {request.key_place} at {address}"
                    f" ({answer.status}) and takes it at {known}: set {request.setting} to it."
                )
                return AddressReport(
                    "fail", sentence, base_url=known, models=other.models, windows=other.windows
                )
        others = [place_of(one).host for one, _ in self._tried[1:]]
        sentence = (
            f"{title} rejects the API key in {request.key_place} at"
            f" {' and at '.join([address, *others])} ({answer.status}){reason}"
        )
        return AddressReport("fail", sentence, _other_owner(request))

    def _works(self, answer: AddressAnswer) -> AddressReport:
        entered, address = self._request.address, self._place.address
        if entered is not None and not has_scheme(clean_address(entered).value):
            return self._suggest(_Found(address, self._wire, answer, with_key=True), None)
        title = (self._listed or self._request.provider).title
        if answer.kind == "credit":
            return AddressReport("fail", f"The account at {title} has no credit ({answer.status}).")
        facts = [f"{title} answers at {address}"]
        if self._request.key and answer.kind != "busy":
            facts.append("takes the key")
        if answer.models is not None:
            facts.append(f"lists {len(answer.models)} models")
        if answer.kind == "busy":
            facts.append("is rate-limiting requests")
        *others, last = facts
        sentence = f"{', '.join(others)} and {last}." if others else f"{last}."
        return AddressReport("ok", sentence, models=answer.models, windows=answer.windows)

    def _suggest(self, found: _Found, cause: AddressAnswer | None) -> AddressReport:
        """Name the address that works; the provider too, if it speaks the other format."""
        shown = self._shown
        fault = "has no http:// or https://" if cause is None else why(self._place, cause)
        what = f"set {self._request.setting} to it"
        speaks, provider = "answers as a model server does", ""
        if found.wire != self._wire:
            provider = found.wire
            speaks = f"speaks {_WIRE_NAMES[found.wire]}"
            what = f"set llm.provider to {provider} and {self._request.setting} to it"
        if found.answer.kind == "key":
            is_sent = found.with_key and self._request.key
            speaks += " and rejects the key" if is_sent else " and wants a key"
        if not found.with_key and self._request.key:
            speaks += " (the key was not sent there)"
        return AddressReport(
            "fail",
            f"{shown} {fault}; {found.address} {speaks}: {what}.",
            base_url=found.address,
            provider=provider,
            models=found.answer.models,
            windows=found.answer.windows,
        )

    def _fails(self, cause: AddressAnswer) -> AddressReport:
        advice = advice_on(self._place, cause)
        if cause.is_heard or cause.kind == "refused":
            others = [address for address, wire in self._tried[1:] if wire == self._wire]
            if others:
                rest = " and others" if len(others) > _MAX_SHOWN else ""
                shown = f"{', '.join(others[:_MAX_SHOWN])}{rest}"
                advice = f"{advice} Tried as well: {shown}.".strip()
        own = addresses_of(self._request.provider)
        if cause.kind == "unknown_host" and self._request.address is not None and own:
            advice += f" {self._request.provider.title} itself is at {' and at '.join(own)}."
        return AddressReport("fail", f"{self._shown} {why(self._place, cause)}.", advice.strip())

    @property
    def _shown(self) -> str:
        """The address as it was entered, without secret parts."""
        entered = self._request.address
        if entered is not None and not has_scheme(clean_address(entered).value):
            return self._place.address.partition("://")[2]
        return self._place.address


def _set_key(request: AddressRequest) -> str:
    variable = request.provider.key_variable
    return f"Set {variable} or llm.api_key." if variable else "Set llm.api_key."


def _other_owner(request: AddressRequest) -> str:
    """Return whose key it looks like, if it is not one of this provider; else ""."""
    owners = find_providers_of_key(request.key)
    if not owners or request.provider in owners:
        return ""
    titles = " or ".join(owner.title for owner in owners)
    names = " or ".join(owner.name for owner in owners)
    return f"It looks like a key of {titles}: set llm.provider to {names}."

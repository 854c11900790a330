"""Checks the addresses and keys of the settings' models, for commands and the page."""

import asyncio
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from internal.channels.cli.application import Check, ServerModels
from internal.config import home
from internal.config.loader import Loaded
from internal.llm.addresses.check import (
    AddressReport,
    AddressRequest,
    check_address,
    list_server_models,
)
from internal.llm.addresses.model_list import doubt_listed_model
from internal.model_providers.registry import Provider, find_model, find_provider
from internal.settings.entered_text import clean_address, clean_key
from internal.settings.types import ConfigError

_PLACEHOLDER = "http://address.invalid"
"""In place of an address that is none, so that the other settings can be read."""


async def check_models(loaded: Loaded, entered: str | None = None) -> list[Check]:
    """Try the address and key of the model, and of its fallbacks' other providers.

    `entered` is the address as it was entered, if the settings cannot have it.
    """
    llm = loaded.settings.llm
    names = dict.fromkeys([llm.provider, *(one.partition(":")[0] for one in llm.fallbacks)])
    providers = [found for name in names if name != "offline" and (found := find_provider(name))]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_check(loaded, one, entered)) for one in providers]
    return [task.result() for task in tasks]


async def _check(loaded: Loaded, provider: Provider, entered: str | None) -> Check:
    llm = loaded.settings.llm
    is_main = provider.name == llm.provider
    request = request_of(loaded, provider)
    if is_main and entered is not None:
        request = request._replace(address=entered)
    report = await check_address(request)
    left_out = " ".join(loaded.cleaned.values()) if is_main else ""
    if report.state == "fail":
        advice = " ".join(filter(None, [advise(report, loaded, provider), left_out]))
        return Check("model", "fail", report.sentence, advice)
    model = llm.model if is_main else _fallback_of(loaded, provider)
    doubt = doubt_listed_model(model, report.models or (), provider.title)
    if doubt:
        all_names = f"`larkspur models list {provider.name}` shows all."
        return Check("model", "warn", doubt, f"{all_names} {left_out}".strip())
    about, advice = describe_window(model, loaded.settings.llm.context_window, report.windows)
    sentence = f"{model} of {provider.name}: {report.sentence} {about}".rstrip()
    return Check("model", "warn" if advice else "ok", sentence, f"{advice} {left_out}".strip())


def describe_window(model: str, used: int, listed: Mapping[str, int]) -> tuple[str, str]:
    """Return a note on a model's context window, and the setting to change; "" for nothing.

    Args:
        model: its name.
        used: the window of the settings, in tokens.
        listed: the windows that its server lists.
    """
    known = find_model(model)
    if known is not None and known.context_window:
        return "", ""
    window = listed.get(model)
    if window is None:
        guess = f"{used:,} tokens (llm.context_window) are a guess"
        return f"Its context window is not known: {guess}.", ""
    about = f"Its server says that the context window is {window:,} tokens"
    if window >= used:
        return f"{about}; runs use {used:,} of them (llm.context_window).", ""
    return f"{about}, and runs use {used:,}.", f"Set llm.context_window to {window}."


def _fallback_of(loaded: Loaded, provider: Provider) -> str:
    models = (one.partition(":") for one in loaded.settings.llm.fallbacks)
    return next(model for name, _, model in models if name == provider.name)


def advise(report: AddressReport, loaded: Loaded, provider: Provider) -> str:
    """Return advice, with the exact line that sets the working address."""
    if not report.base_url:
        return report.advice
    is_main = provider.name == loaded.settings.llm.provider
    origin = loaded.origins.get("llm.base_url", "") if is_main else ""
    if not is_main:
        return f"llm.base_urls: {{{provider.name}: {report.base_url}}}"
    if origin and not origin.startswith("environment ") and origin != _stored(loaded):
        key = f"provider: {report.provider}, " if report.provider else ""
        return f"Write {key}base_url: {report.base_url} at {origin}."
    variable = origin.removeprefix("environment ") if "environment " in origin else ""
    lines = [f"{variable or 'LARKSPUR_LLM__BASE_URL'}={shlex.quote(report.base_url)}"]
    if report.provider:  # the variable of a provider is not read for another one
        lines = [
            f"LARKSPUR_LLM__PROVIDER={report.provider}",
            f"LARKSPUR_LLM__BASE_URL={shlex.quote(report.base_url)}",
        ]
    return f"export {' '.join(lines)}"


def request_of(loaded: Loaded, provider: Provider) -> AddressRequest:
    """Return the address and key of a provider that the settings use."""
    key, address = loaded.settings.llm.credentials(provider.name)
    is_main = provider.name == loaded.settings.llm.provider
    origin = loaded.origins.get("llm.api_key" if is_main else "llm.keys", "")
    from_variable = provider.name in loaded.keyed and not loaded.settings.llm.keys.get(
        provider.name, None
    )
    place = "llm.api_key" if is_main else "llm.keys"
    if from_variable or origin == f"environment {provider.key_variable}":
        place = str(provider.key_variable)
    setting = "llm.base_url" if is_main else f"llm.base_urls.{provider.name}"
    return AddressRequest(provider, address, key, place, setting)


def request_for(
    running: Loaded,
    reload: Callable[..., Loaded],
    provider: Provider,
    *,
    key: str = "",
    address: str = "",
) -> AddressRequest:
    """Return the address and key of any provider, replaced by the entered ones.

    Raises:
        ConfigError: the settings are not valid with this provider.
    """
    chosen: dict[str, Any] = {"provider": provider.name, "model": provider.default_model}
    loaded = running
    if provider.name != running.settings.llm.provider:
        loaded = reload(flags={"llm": chosen})
    request = request_of(loaded, provider)._replace(setting="llm.base_url")
    if not is_own_address(running, loaded, provider):
        request = request._replace(address=None)
    if key:
        request = request._replace(key=clean_key(key).value, key_place="this form")
    if address:
        request = request._replace(address=clean_address(address).value)
    return request


def is_own_address(running: Loaded, loaded: Loaded, provider: Provider) -> bool:
    """Return True if the address in `loaded` is that of this provider, not of another one."""
    origin = loaded.origins.get("llm.base_url", "")
    from_variable = origin == f"environment {provider.base_url_variable}"
    # with a named provider, the stored llm.base_url does not count
    is_stored = origin == _stored(loaded) and provider.name != running.settings.llm.provider
    return from_variable or is_stored or running.settings.llm.provider == provider.name


def check_settings(load: Callable[..., Loaded], config: str | None) -> list[Check]:
    """Check the models of the settings, also if llm.base_url makes them unusable."""
    try:
        loaded, entered = load(config=config), None
    except ConfigError as error:
        if not error.address:
            raise
        flags = {"llm": {"base_url": _PLACEHOLDER}}
        loaded, entered = load(config=config, flags=flags), error.address
    return asyncio.run(check_models(loaded, entered))


def server_models(load: Callable[..., Loaded], config: str | None, name: str) -> ServerModels:
    """Ask the server of a provider for its models; "" is the provider of the settings.

    Raises:
        ConfigError: the settings cannot be used, or there is no such provider.
    """
    loaded = load(config=config)
    llm = loaded.settings.llm
    provider = find_provider(name or llm.provider)
    if provider is None:
        raise ConfigError(f"There is no provider {name[:80]}.")
    request = request_for(loaded, lambda **more: load(config=config, **more), provider)
    report = asyncio.run(list_server_models(request))
    is_used = provider.name == llm.provider
    doubt = doubt_listed_model(llm.model, report.models or (), provider.title) if is_used else ""
    advice = advise(report, loaded, provider) if report.base_url else report.advice
    is_listed = report.state == "ok" and report.models is not None
    return ServerModels(
        provider=provider.name,
        models=report.models if is_listed else None,
        in_use=llm.model if is_used else "",
        sentence=doubt or report.sentence,
        advice=advice,
    )


def _stored(loaded: Loaded) -> str:
    return str(loaded.home / home.SETTINGS_FILE)

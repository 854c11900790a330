"""The stored keys and addresses of the providers of models, for the page and the terminal."""

from collections.abc import Callable
from typing import Any

from internal.agent.domain.errors import Conflict, InvalidRequest, NotFound
from internal.agent.domain.secrets import register_secret
from internal.config import home
from internal.config.loader import Loaded
from internal.model_providers.registry import Provider, find_provider

STORED = "stored"
"""The origin of what is stored in the home folder."""

Stored = dict[str, Any]


def key_origin(loaded: Loaded, provider: Provider) -> str:
    """Return where the key of a provider is set, "" if it is not."""
    llm = loaded.settings.llm
    if provider.name == llm.provider:
        origin = loaded.origins.get("llm.api_key", "")
    elif provider.name in loaded.keyed:
        named = (each for each in provider.key_variables if loaded.environ.get(each, "").strip())
        origin = f"environment {next(named, provider.key_variable)}"
    elif provider.name in loaded.stored.get("llm.keys", {}):
        origin = STORED
    else:
        origin = loaded.origins.get("llm.keys", "") if provider.name in llm.keys else ""
    return STORED if origin == stored_origin(loaded) else origin


def stored_origin(loaded: Loaded) -> str:
    """Return the path of the settings file, as the origin of stored values."""
    return str(loaded.home / home.SETTINGS_FILE)


def require_changeable_key(loaded: Loaded, provider: Provider) -> None:
    """Raise Conflict if the file or the environment sets the key of a provider."""
    origin = key_origin(loaded, provider)
    if origin not in {"", STORED}:
        raise Conflict(f"The key of {provider.title} comes from {origin}. Change it there.")


def require_provider(name: str) -> Provider:
    """Return the provider of a name; raise NotFound if there is none."""
    found = find_provider(name)
    if found is None:
        raise NotFound(f"There is no provider {name[:80]}.")
    return found


def require_key(provider: Provider) -> None:
    """Raise InvalidRequest if a provider has no key."""
    if provider.key_variable is None:
        raise InvalidRequest(f"{provider.title} needs no key.")


def store_key(load: Callable[..., Loaded], name: str, key: str) -> str:
    """Store the key of a provider, and return the title of the provider.

    Raises:
        NotFound, InvalidRequest: there is no such provider, or it needs no key.
        Conflict: the file or the environment sets its key.
        ConfigError, HomeError: the settings cannot be used, or cannot be stored.
    """
    provider, loaded = require_provider(name), load()
    require_key(provider)
    require_changeable_key(loaded, provider)
    register_secret(key)
    stored = home.read_stored_settings(loaded.home)
    change_access(stored, loaded, provider, key=key, base_url=None)
    load(stored=stored)
    home.write_stored_settings(loaded.home, stored)
    return provider.title


def change_access(
    stored: Stored, loaded: Loaded, provider: Provider, *, key: str | None, base_url: str | None
) -> None:
    """Put the key and the address of a provider into `stored`; "" removes one, None leaves it.

    The first key also chooses its provider, instead of the demo model of the settings `loaded`.
    """
    llm = stored.setdefault("llm", {})
    if key is not None:
        _put(llm, "keys", provider.name, key)
    if base_url is not None:
        _put(llm, "base_urls", provider.name, base_url)
    is_needless = provider.key_variable is None and bool(base_url)
    is_demo = loaded.settings.llm.provider == "offline" and not loaded.provider_origin
    if (key or is_needless) and is_demo:
        llm |= {"provider": provider.name, "model": provider.default_model}
    if key == "" and llm.get("provider") == provider.name:
        del llm["provider"]
        llm.pop("model", None)


def _put(llm: Stored, section: str, provider: str, value: str) -> None:
    """Store a value of a provider; "" removes it."""
    values = llm.setdefault(section, {})
    values.pop(provider, None)
    if value:
        values[provider] = value

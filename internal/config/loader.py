"""Reads the settings: defaults < stored settings < YAML file < environment < flags.

The only module that reads the configuration file and the environment.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from internal.config import home as home_folder
from internal.config.service_links import is_service_link
from internal.config.setting_keys import (
    KEYS,
    NAMES,
    REMOVED,
    REMOVED_VARIABLES,
    VARIABLES,
    accepts_many,
    holds_many,
    holds_secret,
    inner_fields,
    section_of,
)
from internal.model_providers.registry import OFFLINE_MODEL, PROVIDERS, find_provider
from internal.search_providers.registry import PROVIDERS as SEARCH_PROVIDERS
from internal.settings.entered_text import clean_address, clean_key
from internal.settings.messages import complaint, name_of, nearest, plain
from internal.settings.settings import Settings
from internal.settings.types import ConfigError, Place

__all__ = ["ConfigError", "Loaded", "load"]

_NOT_KEYS = {"LARKSPUR_HOME", "LARKSPUR_CONFIG"}
_PROXY_VARIABLES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
_NO_PROXY_VARIABLES = ("no_proxy", "NO_PROXY")
_PROVIDER_CHOICES = ("llm.provider", "llm.model", "llm.api_key", "llm.base_url")
_SEARCH_KEYS, _SEARCH_PROVIDERS = "tools.web_search.keys", "tools.web_search.providers"
_VARIABLE = re.compile(r"\$?\$\{([^}]*)\}")
_EXPANDED_LATER = {"mcp.servers"}
"""Keys whose variables are replaced where they are used: a missing one concerns one entry."""


@dataclass(frozen=True)
class Loaded:
    """The settings, and the origin of each given key.

    A key that is not in `origins` has its default. An origin is `FILE:LINE`, `environment VARIABLE`
    or `flag`, or the file of the stored settings. `file` is None without a configuration file.
    `keyed` are the providers whose own variable holds a key, `stored` the keys of stored settings.
    `provider_origin` names the origin of the chosen provider, "" for a stored or no choice.
    `environ` is the environment that was read. `cleaned` are sentences about text that was removed
    around pasted keys and addresses, by key.
    """

    settings: Settings
    home: Path
    file: Path | None
    origins: Mapping[str, str]
    keyed: frozenset[str]
    stored: Mapping[str, Any]
    provider_origin: str
    environ: Mapping[str, str] = field(repr=False)
    cleaned: Mapping[str, str] = field(default_factory=dict)

    def expand(self, value: Any, where: str) -> Any:
        """Return a value with every ${VARIABLE} replaced, also inside lists and mappings.

        Raises:
            ConfigError: a variable is not set; `where` begins the sentence.
        """
        return _expand(value, {**self.environ, "LARKSPUR_HOME": str(self.home)}, where)


class _Given(NamedTuple):
    """A given value and its origin. `places` maps the path of each part to its line."""

    value: Any
    origin: str
    places: Mapping[Place, str] = {}
    expanded: bool = False  # contains the value of a ${VARIABLE}, which may be a secret


_Layer = Mapping[str, _Given]


def load(
    *,
    config: str | Path | None = None,
    flags: Mapping[str, Any] | None = None,
    stored: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Loaded:
    """Read all settings. Nothing is created.

    `config` is the file named on the command line; `flags` are its other settings, nested as in the
    file, where None means not given; `stored` replaces the stored settings.

    Raises:
        ConfigError: a value, a name or the file is invalid; the message has the key and its place.
        HomeError: `LARKSPUR_HOME` is not a folder name, or the stored settings cannot be read.
    """
    home = home_folder.locate(environ)
    file = _find_file(config, environ, home)
    written = (
        {} if file is None else dict(_from_file(file, {**environ, "LARKSPUR_HOME": str(home)}))
    )
    variables = dict(_from_environment(environ))
    flagged = dict(_leaves(Settings, flags or {}, {(): "flag"}))
    named = {**written, **variables, **flagged}
    kept = dict(_from_stored(home, stored))
    chosen = next((named[key].origin for key in _PROVIDER_CHOICES if key in named), "")
    usable = {key: one for key, one in kept.items() if not (chosen and key in _PROVIDER_CHOICES)}
    by = named if chosen else {**usable, **named}
    provider = by["llm.provider"].value if "llm.provider" in by else _decide(by, environ)
    given = {
        "llm.provider": _Given(provider, "default"),
        "database.url": _Given(f"sqlite:///{home}/larkspur.db", "default"),
        **usable,
        **written,
        **dict(_from_provider_variables(provider, named, environ)),
        **{key: one for key, one in _from_proxy_variables(environ) if key not in named},
        **dict(_from_search_variables(named, environ)),
        **variables,
        **flagged,
    }
    given.update(_with_stored_access(kept, given, provider))
    cleaned: dict[str, str] = {}
    given.update(_without_surroundings(given, cleaned))
    origins = {key: one.origin for key, one in given.items() if one.origin != "default"}
    return Loaded(
        _validate(given),
        home,
        file,
        origins,
        frozenset(_keyed(environ)),
        {key: one.value for key, one in kept.items()},
        chosen,
        environ,
        cleaned,
    )


def _from_stored(home: Path, stored: Mapping[str, Any] | None) -> Iterator[tuple[str, _Given]]:
    """Read the settings that were made on the page or at the first start, unless they are given."""
    places: dict[Place, str] = {(): str(home / home_folder.SETTINGS_FILE)}
    values = home_folder.read_stored_settings(home) if stored is None else stored
    yield from _leaves(Settings, values, places)


def _with_stored_access(
    stored: _Layer, given: _Layer, provider: Any
) -> Iterator[tuple[str, _Given]]:
    """Add the stored keys and addresses of providers that have no others."""
    for one, many, is_secret in (
        ("llm.api_key", "llm.keys", True),
        ("llm.base_url", "llm.base_urls", False),
    ):
        kept = stored.get(many)
        if kept is None or not isinstance(kept.value, Mapping):
            continue
        if provider in kept.value and one not in given:
            yield one, kept._replace(value=kept.value[provider])
        named = given.get(many, kept)
        if isinstance(named.value, Mapping):
            values = {**kept.value, **named.value}
            yield many, named._replace(value=values, expanded=is_secret or named.expanded)


def _without_surroundings(given: _Layer, cleaned: dict[str, str]) -> Iterator[tuple[str, _Given]]:
    """Yield keys and addresses of models without text pasted around them, and note its removal."""
    for key, clean in (("llm.api_key", clean_key), ("llm.base_url", clean_address)):
        one = given.get(key)
        if one is None or not isinstance(one.value, str):
            continue
        found = clean(one.value)
        if found.value not in {"", one.value}:
            cleaned[key] = found.sentence(key)
            yield key, one._replace(value=found.value)
    for key, clean in (("llm.keys", clean_key), ("llm.base_urls", clean_address)):
        one = given.get(key)
        if one is not None and isinstance(one.value, Mapping):
            bare = {
                name: (clean(value).value or value) if isinstance(value, str) else value
                for name, value in one.value.items()
            }
            yield key, one._replace(value=bare)


def _decide(named: _Layer, environ: Mapping[str, str]) -> str:
    """Choose the provider if none is named: one for which something is set, else offline."""
    if "llm.model" in named and named["llm.model"].value == OFFLINE_MODEL:
        return "offline"
    first = PROVIDERS[0].name
    if "llm.api_key" in named:  # a key of an unnamed provider is the default provider's
        return first
    is_wanted = not named.keys().isdisjoint({"llm.model", "llm.base_url"})
    usable = (name for name in _keyed(environ) if _has_address(name, environ))
    return next(usable, first if is_wanted else "offline")


def _has_address(provider: str, environ: Mapping[str, str]) -> bool:
    """Return True unless the provider needs an address that its variable does not have."""
    known = find_provider(provider)
    variable = "" if known is None or not known.needs_address else known.base_url_variable or ""
    return not variable or bool(environ.get(variable, "").strip())


def _keyed(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the keys in the providers' own variables. A blank variable counts as unset."""
    return {name: environ[variable].strip() for name, variable in _key_variables(environ).items()}


def _key_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variable of each provider that holds its key."""
    held = {
        p.name: next((name for name in p.key_variables if environ.get(name, "").strip()), "")
        for p in PROVIDERS
    }
    return {name: variable for name, variable in held.items() if variable}


def _from_provider_variables(
    provider: Any, named: _Layer, environ: Mapping[str, str]
) -> Iterator[tuple[str, _Given]]:
    """Read the providers' own variables, of the providers that are needed."""
    keyed = _keyed(environ)
    known = find_provider(str(provider))
    if known is not None:
        if known.name in keyed:
            variable = _key_variables(environ)[known.name]
            yield "llm.api_key", _Given(keyed[known.name], f"environment {variable}")
        if address := environ.get(known.base_url_variable or "", "").strip():
            yield "llm.base_url", _Given(address, f"environment {known.base_url_variable}")
    others = _fallbacks(named) - {str(provider)}
    for key, held in (
        ("llm.keys", keyed),
        ("llm.base_urls", {p.name: environ.get(p.base_url_variable or "") for p in PROVIDERS}),
    ):
        taken = {name: value.strip() for name, value in held.items() if name in others and value}
        given = named.get(key, _Given({}, "environment"))
        if taken and isinstance(given.value, Mapping):
            yield key, given._replace(value={**given.value, **taken}, expanded=True)


def _from_proxy_variables(environ: Mapping[str, str]) -> Iterator[tuple[str, _Given]]:
    """Read the variables that programs share for proxies. A blank variable counts as unset."""
    for name in _PROXY_VARIABLES:
        if url := environ.get(name, "").strip():
            full = url if "://" in url else f"http://{url}"
            yield "channels.lark.proxy", _Given(full, f"environment {name}", expanded=True)
            break
    for name in _NO_PROXY_VARIABLES:
        if hosts := [host.strip() for host in environ.get(name, "").split(",") if host.strip()]:
            yield "channels.lark.no_proxy", _Given(hosts, f"environment {name}")
            break


def _from_search_variables(
    named: _Layer, environ: Mapping[str, str]
) -> Iterator[tuple[str, _Given]]:
    """Read the keys of the wanted search providers from the variables that they are usually in."""
    wanted = named[_SEARCH_PROVIDERS].value if _SEARCH_PROVIDERS in named else None
    keys: dict[str, str] = {}
    places: dict[Place, str] = {}
    for provider in SEARCH_PROVIDERS:
        value = environ.get(provider.key_variable or "", "").strip()
        if value and (not wanted or not isinstance(wanted, list) or provider.name in wanted):
            keys[provider.name] = value
            places[*_SEARCH_KEYS.split("."), provider.name] = f"environment {provider.key_variable}"
    given = named.get(_SEARCH_KEYS, _Given({}, next(iter(places.values()), "")))
    if keys and isinstance(given.value, Mapping):
        yield (
            _SEARCH_KEYS,
            given._replace(value={**given.value, **keys}, places={**given.places, **places}),
        )


def _fallbacks(named: _Layer) -> set[str]:
    """Return the providers named by fallbacks; they are validated later."""
    given = named["llm.fallbacks"].value if "llm.fallbacks" in named else ()
    texts = given if isinstance(given, list | tuple) else ()
    return {text.partition(":")[0] for text in texts if isinstance(text, str)}


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, _Given]]:
    for name, text in environ.items():
        if not name.startswith("LARKSPUR_") or name in _NOT_KEYS:
            continue
        if name in REMOVED_VARIABLES:
            raise ConfigError(f"environment {name}: {_removed(REMOVED_VARIABLES[name])}")
        if name not in VARIABLES:
            if is_service_link(name, environ):
                continue
            hint = nearest(name, [*VARIABLES, *_NOT_KEYS])
            raise ConfigError(f"Unknown environment variable {plain(name)}{hint}")
        key = VARIABLES[name]
        many = holds_many(KEYS[key]) or (accepts_many(KEYS[key]) and text.startswith("["))
        value = _parse_many(name, text) if many else text
        yield key, _Given(value, f"environment {name}")


def _parse_many(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ConfigError(
            f"environment {name}: a list or a mapping must be written as JSON,"
            ' such as ["one", "two"].'
        ) from None


def _find_file(config: str | Path | None, environ: Mapping[str, str], home: Path) -> Path | None:
    """Return the named file, which must exist, or the file in the home folder if it exists."""
    named = environ.get("LARKSPUR_CONFIG") if config is None else str(config)
    if named is None:
        usual = home / "config.yaml"
        return usual if os.path.lexists(usual) else None
    if not named.strip():
        raise ConfigError("The name of the configuration file is blank.")
    return Path(named)


def _from_file(file: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, _Given]]:
    from internal.config.yaml_document import read_document  # noqa: PLC0415 - yaml imports slowly

    document = read_document(file, f"The configuration file {file}")
    places = {place: f"{file}:{line}" for place, line in document.lines.items()}
    for key, given in _leaves(Settings, document.values, places):
        if key in _EXPANDED_LATER:
            yield key, given
            continue
        value = _expand(given.value, environ, f"{given.origin}: {key}")
        yield key, given._replace(value=value, expanded=value != given.value)


def _expand(value: Any, environ: Mapping[str, str], where: str) -> Any:
    """Replace every ${VARIABLE}, also inside lists and mappings; $${ stands for ${.

    ${VARIABLE:-default} is the default where the variable is not set or empty, as in a shell.
    """
    if isinstance(value, list):
        return [_expand(item, environ, where) for item in value]
    if isinstance(value, dict):
        return {name: _expand(item, environ, where) for name, item in value.items()}
    if not isinstance(value, str):
        return value

    def replacement(match: re.Match[str]) -> str:
        if match[0].startswith("$$"):
            return match[0][1:]
        name, has_default, default = match[1].partition(":-")
        if has_default:
            return environ.get(name) or default
        if name not in environ:
            raise ConfigError(f"{where}: {plain(match[0])} is not set in the environment.")
        return environ[name]

    return _VARIABLE.sub(replacement, value)


def _leaves(
    section: type[BaseModel],
    values: Any,
    places: Mapping[Place, str],
    path: tuple[str, ...] = (),
) -> Iterator[tuple[str, _Given]]:
    """Yield the keys that hold a value. An empty value counts as not given."""
    for name, value in values.items():
        here = (*path, name)
        dotted = ".".join(here)
        place = _place(places, here)
        if dotted in REMOVED:
            raise ConfigError(f"{place}: {_removed(dotted)}")
        if name not in section.model_fields:
            hint = nearest(dotted, NAMES)
            raise ConfigError(f"{place}: {plain(dotted)} is an unknown key{hint}")
        inner = section_of(section.model_fields[name])
        if value is None:
            continue
        if inner is None:
            yield dotted, _Given(value, place, places)
        elif isinstance(value, Mapping):
            yield from _leaves(inner, value, places, here)
        else:
            what = name_of(value, show=False)
            raise ConfigError(f"{place}: {dotted} must be a mapping of keys, not {what}.")


def _removed(key: str) -> str:
    return f"{key} is no longer a setting: {REMOVED[key]}"


def _place(places: Mapping[Place, str], path: Place) -> str:
    """Return the location of the longest known prefix of a path."""
    return next(places[path[:n]] for n in range(len(path), -1, -1) if path[:n] in places)


def _validate(given: _Layer) -> Settings:
    tree: dict[str, Any] = {}
    for key in KEYS:  # also the sections without a given key: no default has to be validated
        _branch(tree, key)
    for key, one in given.items():
        branch, name = _branch(tree, key)
        branch[name] = one.value
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    # raised here, so that no traceback contains the values
    entered = first["input"] if first["loc"] == ("llm", "base_url") else None
    raise ConfigError(_sentence(first, given), address=entered if isinstance(entered, str) else "")


def _branch(tree: dict[str, Any], key: str) -> tuple[dict[str, Any], str]:
    """Return the mapping in a tree that holds a key, and the last part of the key."""
    *sections, name = key.split(".")
    for each in sections:
        tree = tree.setdefault(each, {})
    return tree, name


def _sentence(error: ErrorDetails, given: _Layer) -> str:
    path = tuple(one for one in error["loc"] if "[" not in str(one))  # the parts of a union
    dotted = plain(".".join(map(str, path)))
    depth = next((n for n in range(len(path), 0, -1) if ".".join(map(str, path[:n])) in given), 0)
    if depth == 0:  # two keys that contradict each other
        return f"{dotted or 'settings'}: {complaint(error, show=False)}"
    key = ".".join(map(str, path[:depth]))
    one = given[key]
    where = _place({(): one.origin, **one.places}, path)
    if error["type"] == "extra_forbidden":
        hint = nearest(str(path[-1]), sorted(inner_fields(KEYS[key].annotation)))
        return f"{where}: {dotted} is an unknown key{hint}"
    show = not (one.expanded or holds_secret(KEYS[key]))
    return f"{where}: {dotted} {complaint(error, show=show)}"

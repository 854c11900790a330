"""Lists the settings for `larkspur config show`, without secrets."""

import json
from collections.abc import Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from pydantic import BaseModel, SecretStr

from internal.config.loader import Loaded
from internal.config.setting_keys import KEYS
from internal.settings.messages import plain
from internal.settings.types import DatabaseUrl, SecretEntry


class Row(NamedTuple):
    """One key: its value, where a secret is `set` or `not set`, and its origin.

    `origin` is `default`, `FILE:LINE`, `environment VARIABLE` or `flag`.
    """

    key: str
    value: str
    origin: str


def describe(loaded: Loaded) -> list[Row]:
    """Return every key in the order of the models."""
    return [
        Row(key, shown(attrgetter(key)(loaded.settings)), loaded.origins.get(key, "default"))
        for key in KEYS
    ]


def shown(value: Any) -> str:
    """Format a value on one line as YAML would; secrets are never shown."""
    match value:
        case None:
            return "not set"
        case SecretStr():
            return plain(value.shown, 400) if isinstance(value, DatabaseUrl) else "set"
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:g}"
        case tuple() | Mapping():
            return json.dumps(value, default=_inner, ensure_ascii=False)
        case _:
            return plain(str(value), 400)


def _inner(value: BaseModel | SecretStr | SecretEntry) -> Any:
    return "set" if isinstance(value, SecretStr | SecretEntry) else value.model_dump()

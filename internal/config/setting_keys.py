"""The list of all setting keys, derived from the models."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from internal.settings.settings import Settings
from internal.settings.types import DatabaseUrl, SecretEntry


def section_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the section that a field opens, or None if it holds a value."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def holds_many(field: FieldInfo) -> bool:
    """Return True if a key holds a list or a mapping."""
    return get_origin(field.annotation) in {tuple, Mapping}


def accepts_many(field: FieldInfo) -> bool:
    """Return True if a key holds a word or a list."""
    return any(get_origin(kind) is tuple for kind in get_args(field.annotation))


def holds_secret(field: FieldInfo) -> bool:
    """Return True if the value of a key must never be shown."""
    return any(_mentions(field.annotation, each) for each in (SecretStr, SecretEntry, DatabaseUrl))


def _mentions(kind: Any, wanted: type) -> bool:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return any(_mentions(field.annotation, wanted) for field in kind.model_fields.values())
    return kind is wanted or any(_mentions(part, wanted) for part in get_args(kind))


def inner_fields(kind: Any) -> set[str]:
    """Return the keys of the mappings that a value of a type holds."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return set(kind.model_fields)
    return {name for part in get_args(kind) for name in inner_fields(part)}


def _walk(section: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in section.model_fields.items():
        inner = section_of(field)
        if inner is None:
            yield prefix + name, field
        else:
            yield from _walk(inner, f"{prefix}{name}.")


KEYS: Mapping[str, FieldInfo] = dict(_walk(Settings))
"""Every key with its dots, such as `server.port`, in the order of the models."""

NAMES = sorted({".".join(key.split(".")[:n]) for key in KEYS for n in range(1, 5)})
"""Every key and every section: candidates for the intended meaning of an unknown name."""

VARIABLES: Mapping[str, str] = {f"LARKSPUR_{key.upper().replace('.', '__')}": key for key in KEYS}
"""The environment variable of every key: `LARKSPUR_SERVER__PORT` is `server.port`."""

REMOVED: Mapping[str, str] = {
    "access.talk": "it had no effect. Remove it; channels.lark.access.talk says who may submit"
    " tasks in Lark.",
    "access.operate": "it had no effect. Remove it; channels.lark.access.operate says who may"
    " answer questions in Lark.",
    "auth": "local was the only mode and still applies. Remove it.",
    "auth.mode": "local was the only mode and still applies. Remove it.",
}
"""Keys and sections of earlier versions, with the end of the sentence that rejects them."""

REMOVED_VARIABLES: Mapping[str, str] = {
    f"LARKSPUR_{key.upper().replace('.', '__')}": key for key in REMOVED
}

"""Members of JSON objects that are null where a default would do, as many clients write them."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import inspect

_LISTS = (
    inspect.ListType,
    inspect.SetType,
    inspect.FrozenSetType,
    inspect.VarTupleType,
    inspect.CollectionType,
)


def without_default_nulls(value: Any, kind: Any) -> Any:
    """Return a JSON value without the members that are null and may be absent.

    A member whose type has null as a value of its own keeps it.

    Args:
        value: the value as it was decoded.
        kind: the target type, such as a `msgspec.Struct`.
    """
    return _cleaned(value, _info(kind))


@cache
def _info(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _cleaned(value: Any, info: inspect.Type) -> Any:
    match info:
        case inspect.Metadata():
            return _cleaned(value, info.type)
        case inspect.UnionType():
            return _cleaned(value, _chosen(value, info))
        case inspect.StructType() if isinstance(value, Mapping):
            fields = {field.encode_name: field for field in info.fields}
            return {
                name: _cleaned(each, fields[name].type) if name in fields else each
                for name, each in value.items()
                if each is not None or name not in fields or not _may_be_absent(fields[name])
            }
        case inspect.DictType() if isinstance(value, Mapping):
            return {name: _cleaned(each, info.value_type) for name, each in value.items()}
        case _ if isinstance(info, _LISTS) and isinstance(value, list):
            return [_cleaned(each, info.item_type) for each in value]
        case _:
            return value


def _chosen(value: Any, info: inspect.UnionType) -> inspect.Type:
    """Return the type of a union that a value can have, as far as its form shows it."""
    wanted: tuple[type[inspect.Type], ...] = ()
    if isinstance(value, Mapping):
        wanted = (inspect.StructType, inspect.DictType)
    elif isinstance(value, list):
        wanted = _LISTS
    plain = [each.type if isinstance(each, inspect.Metadata) else each for each in info.types]
    return next((each for each in plain if isinstance(each, wanted)), inspect.AnyType())


def _may_be_absent(field: inspect.Field) -> bool:
    return not field.required and not _takes_null(field.type)


def _takes_null(info: inspect.Type) -> bool:
    match info:
        case inspect.Metadata():
            return _takes_null(info.type)
        case inspect.UnionType():
            return any(map(_takes_null, info.types))
        case _:
            return isinstance(info, inspect.NoneType | inspect.AnyType)

"""Examples of structs, made from the types of their fields."""

import types
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

ODD_TEXT = '鹭 🪶 \x00\x1b[2J \u2028 "quoted" \\ </script>\r\n'
_PLAIN: dict[Any, Any] = {str: ODD_TEXT, int: 3, float: 0.5, bool: True, Any: ODD_TEXT}


def example(kind: Any) -> Any:
    """Return a value of a type. Structs have all their fields."""
    if isinstance(kind, NewType):
        return example(kind.__supertype__)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind)
        return kind(
            **{each.name: example(hints[each.name]) for each in msgspec.structs.fields(kind)}
        )
    return _of_generic(kind)


def _of_generic(kind: Any) -> Any:
    arguments = get_args(kind)
    origin = get_origin(kind)
    if origin is Literal:
        return arguments[0]
    if origin in {Union, types.UnionType}:
        return example(next(each for each in arguments if each not in {UnsetType, type(None)}))
    if origin is tuple:
        return (example(arguments[0]),)
    if origin is dict:
        return {"key": example(arguments[1])}
    raise TypeError(f"there is no example of {kind}")


def smallest(value: msgspec.Struct) -> msgspec.Struct:
    """Return a struct with its required fields only."""
    fields = msgspec.structs.fields(type(value))
    return type(value)(**{each.name: getattr(value, each.name) for each in fields if each.required})


def unset_fields(value: msgspec.Struct) -> set[str]:
    """Return the fields that a struct leaves out of its JSON."""
    names = (each.name for each in msgspec.structs.fields(type(value)))
    return {name for name in names if getattr(value, name) is UNSET}

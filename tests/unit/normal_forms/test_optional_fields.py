"""Null in place of a default."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from internal.normal_forms.optional_fields import without_default_nulls


class Inner(msgspec.Struct):
    name: str
    size: Annotated[int, Meta(ge=1, extra_json_schema={"title": "Size"})] = 1


class Outer(msgspec.Struct, rename="camel"):
    key: str
    wait: int = 0
    each_of: tuple[Inner, ...] = ()
    by_name: dict[str, Inner] = {}
    text_or_parts: str | tuple[Inner, ...] = ""
    one: Inner | None = None
    title: str | UnsetType | None = UNSET
    flag: bool | UnsetType = UNSET
    free: Any = 7


def test_null_is_absent_where_there_is_a_default_and_null_is_no_value() -> None:
    inner = {"name": "n", "size": None}
    given = {
        "key": "k",
        "wait": None,
        "eachOf": [inner],
        "byName": {"a": inner, "b": None},
        "textOrParts": [inner],
        "one": inner,
        "title": None,
        "flag": None,
        "free": None,
        "unknown": None,
    }
    assert without_default_nulls(given, Outer) == {
        "key": "k",
        "eachOf": [{"name": "n"}],
        "byName": {"a": {"name": "n"}, "b": None},
        "textOrParts": [{"name": "n"}],
        "one": {"name": "n"},
        "title": None,
        "free": None,
        "unknown": None,
    }


def test_required_members_and_other_forms_are_left_as_they_are() -> None:
    assert without_default_nulls({"key": None}, Outer) == {"key": None}
    assert without_default_nulls({"eachOf": "text", "key": 1}, Outer) == {
        "eachOf": "text",
        "key": 1,
    }
    assert without_default_nulls([None], Outer) == [None]

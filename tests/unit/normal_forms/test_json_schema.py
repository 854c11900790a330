"""JSON Schemas: their descriptions are docstrings without indentation, on every Python version."""

from typing import Any

import msgspec

from internal.normal_forms.json_schema import schema_components, type_schema


class Leg(msgspec.Struct):
    """A part of a journey.

    The places are names:
        `start` first.
    """

    start: str
    description: str = "of a\n    leg"


class Journey(msgspec.Struct):
    """A journey."""

    legs: list[Leg]


# Python < 3.13 keeps the indentation of docstrings, later ones remove it: both forms, everywhere
Leg.__doc__ = "A part of a journey.\n\n    The places are names:\n        `start` first.\n    "
TEXT = "A part of a journey.\n\nThe places are names:\n    `start` first."


def check(leg: dict[str, Any]) -> None:
    assert leg["description"] == TEXT
    assert leg["properties"]["description"] == {"type": "string", "default": "of a\n    leg"}


def test_a_description_has_no_indentation() -> None:
    check(type_schema(Journey)["$defs"]["Leg"])
    (_,), components = schema_components([Journey], ref_template="#/$defs/{name}")
    check(components["Leg"])
    assert components["Journey"]["description"] == "A journey."


def test_a_hook_describes_other_types() -> None:
    schema = type_schema(complex, schema_hook=lambda _: {"description": "a\n  b", "type": "x"})
    assert schema == {"description": "a\nb", "type": "x"}

"""Required arguments with a default."""

from internal.mcp.default_arguments import with_defaults, without_needless

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": "integer", "default": 10},
        "sort": {"type": "string", "default": None},
        "page": {
            "type": "object",
            "properties": {"size": {"default": 5}, "number": {}, "any": True},
            "required": ["size", "number", "any"],
        },
    },
    "required": ["path", "limit", "sort", "missing"],
}


def test_what_has_a_default_is_not_required() -> None:
    changed = without_needless(SCHEMA)
    assert changed["required"] == ["path", "missing"]
    assert changed["properties"]["page"]["required"] == ["number", "any"]
    alone = {"type": "object", "properties": {"a": {"default": 1}}, "required": ["a"]}
    assert without_needless(alone) == {"type": "object", "properties": {"a": {"default": 1}}}
    assert without_needless({"type": "object"}) == {"type": "object"}


def test_what_is_required_and_missing_has_its_default() -> None:
    assert with_defaults(SCHEMA, {"path": "x", "page": {"number": 1}}) == {
        "path": "x",
        "limit": 10,
        "sort": None,
        "page": {"number": 1, "size": 5},
    }
    assert with_defaults(SCHEMA, {"limit": 0, "page": "all"}) == {
        "limit": 0,
        "sort": None,
        "page": "all",
    }
    assert with_defaults({}, {"a": 1}) == {"a": 1}

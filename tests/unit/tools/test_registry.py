"""The registry of tools."""

from internal.tools.registry import TOOLS


def test_permission_rules_find_what_they_look_at() -> None:
    """Rules read `command`, `path` and `url`; a tool with other names would slip through."""
    looked_at = {"shell": "command", "web_fetch": "url", "search_files": "path"}
    for tool in TOOLS:
        wanted = looked_at.get(tool.spec.name, "path")
        assert wanted in tool.spec.parameters["properties"], tool.spec.name

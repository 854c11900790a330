"""The registry of tools."""

from internal.tools.registry import TOOLS


def test_permission_rules_find_what_they_look_at() -> None:
    """Rules read the arguments named by the targets; other arguments would bypass them."""
    looked_at = {
        "shell": ["command", "network", "read_paths", "write_paths"],
        "shell_output": [],  # commands of the same session
        "shell_stop": [],
        "run_code": ["code", "network", "read_paths", "write_paths"],
        "web_fetch": ["url"],
        "web_search": [],  # the settings name the search providers
        "share_file": ["paths"],
    }
    for tool in TOOLS:
        wanted = looked_at.get(tool.spec.name, ["path"])
        assert {*wanted} <= tool.spec.parameters["properties"].keys(), tool.spec.name
        assert [target.argument for target in tool.spec.targets] == wanted, tool.spec.name

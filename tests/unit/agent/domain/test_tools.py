"""Tool specifications."""

import msgspec

from internal.agent.domain.permissions.targets import CommandTarget, PathTarget
from internal.agent.domain.tools import ToolSpec, targets_by_tool

RUN = ToolSpec("run", "", {}, "exec", targets=(CommandTarget("line"),), title={"en": "Run"})
COPY = ToolSpec("copy", "", {}, "write", targets=(PathTarget("from"), PathTarget("to")))


def test_the_command_of_a_call_is_its_command_target() -> None:
    assert RUN.command({"line": "ls"}) == "ls"
    assert RUN.command({"line": 1}) is None
    assert COPY.command({"from": "a", "to": "b"}) is None


def test_targets_are_listed_by_tool() -> None:
    assert targets_by_tool([RUN, COPY]) == {"run": RUN.targets, "copy": COPY.targets}


def test_a_specification_survives_storage() -> None:
    for spec in (RUN, COPY):
        assert msgspec.json.decode(msgspec.json.encode(spec), type=ToolSpec) == spec

"""The configuration of a run."""

import msgspec

from tests.support.turn_driver import TOOLS, run_config


def test_a_tool_is_found_by_its_name() -> None:
    config = run_config()
    assert [config.tool(spec.name) for spec in TOOLS] == list(TOOLS)
    assert config.tool("move_file") is None


def test_a_deferred_tool_is_found_by_its_name() -> None:
    config = msgspec.structs.replace(run_config(), tools=TOOLS[1:], deferred=TOOLS[:1])
    assert config.tool(TOOLS[0].name) == TOOLS[0]
    assert config.all_tools == (*TOOLS[1:], TOOLS[0])


def test_no_person_is_asked_by_default() -> None:
    config = run_config()
    assert (config.people, config.plan_review) == (False, "off")

"""The configuration of a run."""

from tests.support.turn_driver import TOOLS, run_config


def test_a_tool_is_found_by_its_name() -> None:
    config = run_config()
    assert [config.tool(spec.name) for spec in TOOLS] == list(TOOLS)
    assert config.tool("move_file") is None


def test_no_person_is_asked_by_default() -> None:
    config = run_config()
    assert (config.people, config.plan_review) == (False, "off")

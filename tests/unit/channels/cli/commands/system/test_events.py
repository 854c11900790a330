"""`larkspur events`."""

from tests.support.command_runner import CommandRunner


def test_schema_is_json_and_reference_is_markdown(run: CommandRunner) -> None:
    schema, reference = run("events", "schema"), run("events", "schema", "--markdown")
    assert schema.json["$schema"].startswith("https://json-schema.org/")
    assert reference.out.startswith("#")

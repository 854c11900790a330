"""`larkspur models`."""

from internal.llm.registry import PROVIDERS
from tests.unit.channels.cli.commands.conftest import CommandRunner


def test_model_in_use_is_marked(run: CommandRunner) -> None:
    listed = run("models", "--json").json
    assert [one["provider"] for one in listed if one["in_use"]] == ["offline"]
    assert {one["provider"] for one in listed} == {provider.name for provider in PROVIDERS}


def test_text_has_a_header_and_the_date_of_the_prices(run: CommandRunner) -> None:
    first, *_, last = run("models").out.splitlines()
    assert first.split()[:3] == ["provider", "model", "key"]
    assert "List prices as of" in last

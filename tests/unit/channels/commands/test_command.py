"""Arguments of commands."""

from internal.channels.commands.command import Arguments, Value


def test_completion_offers_the_values_or_else_the_choices() -> None:
    assert Arguments[object]("[on|off]", ("on", "off")).offered(None) == [Value("on"), Value("off")]
    chosen = Arguments[str]("[NAME]", values=lambda name: [Value(name, "known")])
    assert chosen.offered("a") == [Value("a", "known")]
    assert Arguments[object]().offered(None) == []

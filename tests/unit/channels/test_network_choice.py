"""Input for the network choice of commands."""

import pytest

from internal.channels.network_choice import (
    format_network_choice,
    parse_network_choice,
)


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("off", "off"),
        (" Registries ", "registries"),
        ("open", "open"),
        ("github.com", ("github.com",)),
        ("github.com,*.a.example  b.example:8443", ("github.com", "*.a.example", "b.example:8443")),
        ("registries github.com", ("registries", "github.com")),
    ],
)
def test_a_word_or_hosts_are_read(text: str, choice: str | tuple[str, ...]) -> None:
    assert parse_network_choice(text) == choice
    assert parse_network_choice(format_network_choice(choice)) == choice


@pytest.mark.parametrize("text", ["", " , "])
def test_blank_text_is_no_choice(text: str) -> None:
    with pytest.raises(ValueError, match="must be off, registries, open, or hosts"):
        parse_network_choice(text)


def test_no_host_is_off() -> None:
    assert format_network_choice(()) == "off"

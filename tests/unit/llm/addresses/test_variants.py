"""Likely variants of an address, and the addresses of providers."""

import pytest

from internal.llm.addresses.variants import (
    addresses_of,
    path_variants,
    place_of,
    server_variants,
    wire_format,
)
from internal.model_providers.registry import PROVIDERS, find_provider


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://Host:8000/v1/", "http://host:8000/v1"),
        ("https://host:443/v1?x=1#y", "https://host/v1"),
        ("https://me:secret@host/v1", "https://host/v1"),
        ("localhost:8000/v1", "http://localhost:8000/v1"),
        ("10.0.0.7/v1", "http://10.0.0.7/v1"),
        ("api.example.org/v1", "https://api.example.org/v1"),
        ("api.example.org:8000", "http://api.example.org:8000"),
        ("//api.example.org", "https://api.example.org"),
        ("[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_an_address_is_brought_to_one_form(text: str, address: str) -> None:
    assert place_of(text).address == address


@pytest.mark.parametrize("text", ["", "ftp://host", "http://", "http://[::1", "a b", "http://h:x"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each parser has its own words
        place_of(text)


def test_the_path_of_the_registry_is_tried_at_its_host() -> None:
    known = ("https://ark.example.org/api/v3",)
    place = place_of("https://ark.example.org/console")
    assert "https://ark.example.org/api/v3" in path_variants(place, "openai", known)
    assert "https://other.example.org/api/v3" not in path_variants(
        place_of("https://other.example.org"), "openai", known
    )


def test_the_key_is_for_no_other_port_and_no_weaker_connection() -> None:
    there = place_of("https://host.example.org:8443/v1")
    found = {place.origin: key for place, key in server_variants(there, (8000,))}
    assert found == {"http://host.example.org:8443": False, "https://host.example.org": True}
    here = dict(server_variants(place_of("http://127.0.0.1:1/v1"), (8000,)))
    assert here[place_of("http://127.0.0.1:8000/v1")] is False


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda one: one.name)
def test_every_provider_with_a_wire_format_has_addresses(provider: object) -> None:
    found = find_provider(getattr(provider, "name", ""))
    assert found is not None
    is_at_own_address = wire_format(found) is None or not getattr(found, "base_url", "here")
    assert bool(addresses_of(found)) or is_at_own_address, "Azure: each person has one"
    assert all(place_of(one).address == one for one in addresses_of(found))

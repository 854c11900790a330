"""Sentences about hosts that the command of a server does not reach as its definition says."""

import pytest

from internal.agent.ports.sandbox import SandboxCapabilities
from internal.mcp.definitions import DefinitionError, parse_definition
from internal.mcp.launch.reach import describe_reach

ISOLATED = SandboxCapabilities(isolated=True, hosts=True)


def sentences(*network: str, able: SandboxCapabilities = ISOLATED) -> str:
    setting = network[0] if network in {("open",), ("registries",)} else network
    entry = {"command": "server", "network": setting}
    definition = parse_definition("db", entry, lambda value, _: value, "mcp.json")
    return " ".join(describe_reach(definition, able))


def test_single_hosts_need_no_word() -> None:
    named = ("127.0.0.1:5432", "[::1]:5432", "localhost", "10.0.0.5:22", "db.example:5432")
    assert sentences(*named, "registries") == ""
    assert sentences("registries") == ""
    assert sentences("open", able=SandboxCapabilities()) == ""  # without isolation all is reached


@pytest.mark.parametrize(
    ("host", "sentence"),
    [
        ("*.example:5432", "Programs reach *.example:5432 through the HTTP proxy of the sandbox"),
        ("open", "Programs reach all hosts (open) through the HTTP proxy of the sandbox only."),
        ("169.254.169.254", "169.254.169.254 cannot be reached: 169.254.169.254 is never fetched."),
        ("[fe80::1]:80", "fe80::1 cannot be reached: fe80::1 is never fetched."),
        ("0.0.0.0:5432", "0.0.0.0 cannot be reached: 0.0.0.0 is never fetched."),
        ("2130706433:80", "2130706433 is an odd spelling of an address: write it plainly."),
    ],
)
def test_what_is_not_reached_as_it_is_has_a_sentence(host: str, sentence: str) -> None:
    assert sentence in sentences(host)


def test_hosts_beyond_the_bound_and_sandboxes_without_hosts_have_a_sentence() -> None:
    many = [f"host{number}.example:5432" for number in range(40)]
    assert sentences(*many).startswith("These are 40 ports of single hosts, of which programs")
    none = SandboxCapabilities(isolated=True)
    assert "lets commands reach no hosts" in sentences("127.0.0.1:5432", able=none)


@pytest.mark.parametrize("host", ["127.0.0.1:5000-5010", "127.0.0.1:53/udp", "db:0", "db:70000"])
def test_ranges_and_other_protocols_are_refused(host: str) -> None:
    with pytest.raises(DefinitionError, match="with one TCP port or none"):
        sentences(host)

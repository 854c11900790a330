"""Definitions of servers: strict about types, lenient about keys of other programs."""

import contextlib
import itertools
from typing import Any

import pytest

from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.secrets import MASK, mask_secrets
from internal.mcp.definitions import DefinitionError, ServerDefinition, parse_definition

LOGIN = {"url": "https://example.com", "login": "shared"}


def parse(name: str = "time", **entry: Any) -> ServerDefinition:
    return parse_definition(name, entry, lambda value, _where: value, "mcp.json")


def test_a_command_has_the_usual_keys_and_asks_by_default() -> None:
    found = parse(command="npx", args=["-y", "a b"], env={"A": "1"})
    assert found.shown == "npx -y 'a b'"
    assert found.risk_of("anything") == "exec"
    assert found.network == ()
    assert found.warnings == ()


def test_unknown_keys_are_a_warning() -> None:
    (warning,) = parse(command="npx", dev={}, gallery=True).warnings
    assert warning == "mcp.json: time: unknown keys are ignored: dev, gallery"


def test_the_keys_of_other_programs_are_understood_and_what_has_no_effect_is_a_warning() -> None:
    found = parse(type="sse", httpUrl="https://example.com/sse", timeout=5_000, trust=True)
    assert (found.url, found.transport) == ("https://example.com/sse", "sse")
    assert found.call_timeout_seconds == 5
    assert found.warnings[0].startswith("mcp.json: time: Left out: trust; calls are asked about")
    plain = parse(url="https://a.example")
    assert plain.sha256 == parse(url="https://a.example", type="http").sha256
    assert found.sha256 != parse(url="https://example.com/sse").sha256


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, "give either a command or a url"),
        ({"command": "x", "url": "https://example.com"}, "give either a command or a url"),
        ({"command": 3}, r"Expected `str`, got `int` - at `\$.command`"),
        ({"command": "x", "args": "-y"}, r"Expected `array`, got `str` - at `\$.args`"),
        ({"command": "x", "env": {"A": 1}}, "Expected `str`, got `int`"),
        ({"command": "x", "env": {"A=B": "1"}}, "not the name of an environment variable"),
        ({"command": "x", "args": ["a\0"]}, "NUL"),
        ({"command": "x", "cwd": "sub"}, "'sub' is not an absolute path"),
        ({"command": "x", "read_only": ["/proc"]}, "cannot be given to commands"),
        ({"command": "x", "network": ["exa mple"]}, "write a host name"),
        ({"command": "x", "risk": "none"}, "Invalid enum value 'none'"),
        ({"command": "x", "start_timeout_seconds": 0}, "must be more than 0"),
        ({"url": "ftp://example.com"}, "must begin with https://"),
        ({"url": "http://example.com"}, "allow_private_networks"),
        ({"url": "https://a:b@example.com"}, "use headers"),
        ({"url": "https://0x7f.1/"}, "odd spelling"),
        ({"url": "https://example.com/\u202e"}, "control characters"),
        ({"url": "https://example.com", "headers": {"Host": "x"}}, "cannot be set"),
        ({"url": "https://example.com", "headers": {"A": "x\r\nB: y"}}, "printable ASCII"),
        ({"url": "https://example.com", "type": "ws"}, "WebSocket is no transport"),
        ({"command": "x", "type": "http"}, "the type http is not one of a command"),
        ({"url": "https://example.com", "type": "stdio"}, "the type stdio is not one of a url"),
        ({"command": "x", "login": "shared"}, "login is for servers with a url"),
        ({"command": "x", "scopes": ["a"]}, "need the key login"),
        ({**LOGIN, "headers": {"authorization": "x"}}, "either login or the header"),
        ({**LOGIN, "login": "client_credentials"}, "needs client_id and client_secret"),
        ({**LOGIN, "client_secret": "x"}, "client_secret needs client_id"),
        ({**LOGIN, "client_id": "x"}, "client_id needs issuer"),
        ({**LOGIN, "client_id": "x", "issuer": "http://example.com"}, "http:// is accepted"),
        ({**LOGIN, "client_id": "x", "issuer": "file:///x"}, "the issuer must begin with https"),
        ({**LOGIN, "client_id": "x\n", "issuer": "https://example.com"}, "printable ASCII"),
        ({**LOGIN, "scopes": ['a" b']}, "a scope is empty, or contains blanks"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        parse(**entry)


FOREIGN = (
    *("transport", "type", "command", "args", "env", "headers", "url", "httpUrl", "enabled"),
    *("timeout", "startup_timeout_ms", "bearer_token_env_var", "env_http_headers", "env_vars"),
    *("settings", "oauth", "disabledTools", "environment", "cwd"),
)


@pytest.mark.parametrize("key", FOREIGN)
def test_odd_values_are_refused_with_a_sentence_or_used(key: str) -> None:
    odd: list[Any] = [None, True, 3, -1.5, "", "x", "${a:b}", [], [1], ["x", None], {}, {"a": 1}]
    starts: list[dict[str, Any]] = [{}, {"command": "x"}, {"url": "https://example.com"}]
    for value, start in itertools.product(odd, starts):
        with contextlib.suppress(DefinitionError):
            parse(**{**start, key: value})


@pytest.mark.parametrize("name", ["", "A", "a b", "a__b", "a_", "é", "a/b", "x" * 41])
def test_a_name_that_could_be_confused_is_refused(name: str) -> None:
    with pytest.raises(DefinitionError, match="cannot be the name of an MCP server"):
        parse(name, command="x")


@pytest.mark.parametrize(
    "change",
    [
        {"command": "node"},
        {"args": ["-z"]},
        {"env": {"A": "2"}},
        {"env": {"B": "1"}},
        {"cwd": "/srv"},
        {"network": "open"},
        {"read_only": ["/srv/data"]},
        {"writable": ["/srv/data"]},
    ],
)
def test_a_change_of_what_runs_changes_the_hash(change: dict[str, Any]) -> None:
    entry: dict[str, Any] = {"command": "npx", "args": ["-y"], "env": {"A": "1"}}
    assert parse(**{**entry, **change}).sha256 != parse(**entry).sha256


def test_risk_and_times_do_not_change_the_hash() -> None:
    changed = parse(command="x", risk="read", risks={"a": "net"}, idle_seconds=5, disabled=True)
    assert changed.sha256 == parse(command="x").sha256
    assert (changed.risk_of("a"), changed.risk_of("b")) == ("net", "read")


def test_secrets_are_masked_and_a_missing_variable_is_named() -> None:
    def expand(value: Any, where: str) -> Any:
        if "headers" not in value:
            raise LarkspurError(f"{where}: ${{NOPE}} is not set in the environment.")
        return {**value, "headers": {"Authorization": "Bearer canary-b0a7c9d2"}}

    entry = {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${X}"}}
    parse_definition("x", entry, expand, "mcp.json")
    assert mask_secrets("canary-b0a7c9d2") == MASK
    parse(command="x", env={"MY_TOKEN": "canary-1f00e9d2"})
    assert mask_secrets("canary-1f00e9d2") == MASK
    with pytest.raises(DefinitionError, match=r"mcp.json: x: \$\{NOPE\} is not set"):
        parse_definition("x", {"command": "${NOPE}"}, expand, "mcp.json")


def test_the_login_is_a_part_of_what_a_person_accepts_and_its_secret_is_masked() -> None:
    client = {"client_id": "c", "issuer": "https://auth.example.com"}
    entries = (
        LOGIN,
        {**LOGIN, "login": "personal"},
        {**LOGIN, "scopes": ["read"]},
        {**LOGIN, **client},
        {**LOGIN, **client, "client_secret": "canary-secret-1"},
    )
    assert len({parse(**entry).sha256 for entry in entries}) == len(entries)
    assert mask_secrets("canary-secret-1") == MASK

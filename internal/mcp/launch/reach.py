"""The hosts of a definition that its command does not reach, or not without a proxy."""

from collections.abc import Iterator

from internal.agent.domain.permissions.network import (
    EVERY_HOST,
    MAX_FORWARDED,
    forwarded_patterns,
    ports_of,
    unreachable_reason,
)
from internal.agent.domain.permissions.rules import HostPattern, parse_host_pattern, split_rule
from internal.agent.domain.permissions.targets import NETWORK
from internal.agent.ports.sandbox import SandboxCapabilities
from internal.mcp.definitions import ServerDefinition


def describe_reach(definition: ServerDefinition, able: SandboxCapabilities) -> list[str]:
    """Return a sentence for each part of `network` that programs cannot use as written."""
    if not (definition.command and definition.network and able.isolated):
        return []
    if not able.hosts:
        return ["The sandbox of this machine lets commands reach no hosts, and none is reached."]
    return [*_sentences(list(map(_pattern, definition.network)))]


def _pattern(rule: str) -> HostPattern:
    _, host = split_rule(rule)
    return EVERY_HOST if host is None else parse_host_pattern(host, rule, NETWORK)


def _sentences(patterns: list[HostPattern]) -> Iterator[str]:
    for each in patterns:
        if reason := unreachable_reason(each):
            yield f"{each.host} cannot be reached: {reason}."
    many = [_name(each) for each in patterns if each.subdomains]
    if many:
        yield (
            f"Programs reach {', '.join(many)} through the HTTP proxy of the sandbox only. One that"
            " knows no proxy, such as the driver of a database, needs each host as host:port."
        )
    count = sum(len(ports_of(each)) for each in forwarded_patterns(patterns))
    if count > MAX_FORWARDED:
        yield (
            f"These are {count} ports of single hosts, of which programs that know no proxy reach"
            f" {MAX_FORWARDED}: first those that are named with a port or by their address."
        )


def _name(pattern: HostPattern) -> str:
    port = f":{pattern.port}" if pattern.port else ""
    return f"*.{pattern.host}{port}" if pattern.host else "all hosts (open)"

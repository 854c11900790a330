"""The hosts that isolated commands reach.

The rule `network(example.com)` holds for the commands of all tools. A command names further hosts
in its arguments: they need such a rule, or a person's yes.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from internal.agent.domain.permissions.hosts import matches_host
from internal.agent.domain.permissions.rules import (
    HostPattern,
    Rule,
    RuleError,
    parse_host_pattern,
    parse_rule,
    split_rule,
)
from internal.agent.domain.permissions.targets import NETWORK, NetworkTarget, Target
from internal.normal_forms.addresses import address_refusal, parse_host, parse_ip

MAX_FORWARDED = 32
"""Maximum number of ports of single hosts that a command reaches without the proxy."""

EVERY_HOST = HostPattern("", subdomains=True, port=None)
"""Every host on every port: the meaning of a rule without a host and of the argument `*`."""

REGISTRIES = (
    *("pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "registry.yarnpkg.com"),
    *("crates.io", "index.crates.io", "static.crates.io", "rubygems.org", "index.rubygems.org"),
    *("proxy.golang.org", "sum.golang.org", "repo1.maven.org", "repo.maven.apache.org"),
    *("repo.packagist.org", "conda.anaconda.org"),
)
"""The package indexes of the usual programming languages."""

WEB_PORTS = (80, 443)
"""The ports of a host that is allowed without one."""

NetworkKind = Literal["off", "registries", "hosts", "open"]
"""Network without a question for commands: none, package indexes, named hosts, or all hosts."""

HostText = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
NetworkSetting = (
    Literal["off", "registries", "open"]
    | Annotated[tuple[HostText, ...], msgspec.Meta(max_length=200)]
)
"""The same as a setting: a word, or hosts such as example.com:8443, also with `registries`."""


class NetworkAccess(msgspec.Struct, frozen=True):
    """The hosts that a command reaches; none by default. `deny` takes precedence.

    `private` are the patterns in `allow` whose hosts may have addresses of this machine and of
    private networks, even if the settings of the sandbox forbid such addresses.
    """

    allow: tuple[HostPattern, ...] = ()
    deny: tuple[HostPattern, ...] = ()
    private: tuple[HostPattern, ...] = ()

    def permits(self, host: str, port: int) -> bool:
        """Return True if a command may connect to a host in lower case.

        A pattern that allows a host without a port allows ports 80 and 443.
        """
        if any(matches_host(one, host) and one.port in {None, port} for one in self.deny):
            return False
        return _names_site(self.allow, host, port)

    def permits_private(self, host: str, port: int) -> bool:
        """Return True if a host in lower case may have an address of a private network."""
        return _names_site(self.private, host, port)


NO_NETWORK = NetworkAccess()


def names_address(pattern: HostPattern) -> bool:
    """Return True if a pattern is the address of one host, not a name that others can change."""
    if pattern.host == "localhost":
        return not pattern.subdomains
    try:
        parse_ip(pattern.host)
    except ValueError:
        return False
    return True


def forwarded_patterns(patterns: Iterable[HostPattern]) -> list[HostPattern]:
    """Return the patterns that name one host, which programs reach without a proxy.

    Patterns with a port or an address come first. The package indexes are left out: the programs
    that use them support proxies.
    """
    single = [
        one
        for one in patterns
        if not (one.subdomains or unreachable_reason(one))
        and (one.port or one.host not in REGISTRIES)
    ]
    return sorted(single, key=lambda one: one.port is None and not names_address(one))


def unreachable_reason(pattern: HostPattern) -> str:
    """Return why no program can reach the hosts of a pattern, "" if it can."""
    if pattern.subdomains:
        return ""
    try:
        host = parse_host(pattern.host, bracketed=":" in pattern.host)
    except ValueError as error:
        return str(error)
    if not names_address(pattern) or host == "localhost":
        return "" if host == pattern.host else f"{pattern.host} is written {host}"
    return address_refusal(host, private=True) or ""


def private_access(access: NetworkAccess, *, names: bool) -> NetworkAccess:
    """Return an access whose hosts may be of this machine and of private networks.

    Of addresses that are written out this always holds: nobody can lead them elsewhere. With
    `names` it holds for names as well.
    """
    private = tuple(one for one in access.allow if names or names_address(one))
    return msgspec.structs.replace(access, private=private)


def ports_of(pattern: HostPattern) -> tuple[int, ...]:
    """Return the ports that a pattern allows on a host; not for `EVERY_HOST`, which allows all."""
    return (pattern.port,) if pattern.port else WEB_PORTS


def _names_site(patterns: Iterable[HostPattern], host: str, port: int) -> bool:
    return any(
        matches_host(one, host) and (one == EVERY_HOST or port in ports_of(one)) for one in patterns
    )


def network_access(
    allow: Iterable[Rule], deny: Iterable[Rule], wanted: Iterable[str]
) -> NetworkAccess:
    """Return the hosts that a call reaches, by the rules and by its own arguments.

    Args:
        allow: rules of any kind.
        deny: rules of any kind.
        wanted: the hosts in the arguments of a call that may run.
    """
    named = [pattern for text in wanted if (pattern := parse_wanted_host(text)) is not None]
    return NetworkAccess((*_patterns(allow), *named), tuple(_patterns(deny)))


def widens_network(allow: Iterable[str], setting: NetworkSetting) -> bool:
    """Return True if a setting lets commands reach a host that the allow rules do not."""
    rules = [parse_rule(text, {}) for text in allow if split_rule(text)[0] == NETWORK]
    wanted = _patterns(parse_rule(text, {}) for text in rules_of_network(setting))
    return any(not any(covers_host(rule, host) for rule in rules) for host in wanted)


def rules_of_network(setting: NetworkSetting) -> tuple[str, ...]:
    """Return the rules for a setting; they may be invalid if an entry is not a host.

    Raises:
        RuleError: a word that stands for itself is among hosts.
    """
    if isinstance(setting, str):
        found = {"off": (), "open": (NETWORK,), "registries": map(suggest_network_rule, REGISTRIES)}
        return tuple(found[setting])
    rules: list[str] = []
    for host in setting:
        if host in {"off", "open"}:
            raise RuleError(
                f"{host} stands alone: it cannot be combined with hosts",
                reason_code="rule_host_alone",
                host=host,
            )
        if host == "registries":
            rules += rules_of_network("registries")
        else:
            rules.append(suggest_network_rule(host))
    return tuple(dict.fromkeys(rules))


def network_kind(allow: Iterable[str]) -> NetworkKind:
    """Return the network that the allow rules of a policy open to commands."""
    rules = {text for text in allow if split_rule(text)[0] == NETWORK}
    if NETWORK in rules:
        return "open"
    if not rules:
        return "off"
    return "registries" if rules == set(rules_of_network("registries")) else "hosts"


def network_hosts(allow: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts that the allow rules name."""
    rules = (split_rule(text) for text in allow)
    return tuple(pattern for tool, pattern in rules if tool == NETWORK and pattern)


def wanted_hosts(targets: Iterable[Target], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the hosts that the arguments of a call name; other values are in parentheses."""
    found: list[str] = []
    for target in targets:
        if isinstance(target, NetworkTarget):
            value = arguments.get(target.argument) or ()
            values = value if isinstance(value, list | tuple) else (value,)
            found += [one if isinstance(one, str) else f"({one!r})" for one in values]
    return tuple(dict.fromkeys(found))


def parse_wanted_host(text: str) -> HostPattern | None:
    """Return the hosts of an argument such as example.com:8443 or *, None if it is not a host."""
    if text.strip() == "*":
        return EVERY_HOST
    try:
        pattern = parse_host_pattern(text.strip(), text, NETWORK)
        host = parse_host(pattern.host, bracketed=":" in pattern.host)
    except (RuleError, ValueError):
        return None
    return pattern if host == pattern.host else None


def covers_host(rule: Rule, wanted: HostPattern) -> bool:
    """Return True if an allow rule covers all that an argument names."""
    return rule.tool == NETWORK and any(_covers(one, wanted) for one in _patterns([rule]))


def denies_host(rule: Rule, wanted: HostPattern) -> bool:
    """Return True if a deny rule forbids a single host.

    Of a pattern for many hosts, the denied ones are refused when a command connects to them.
    """
    if rule.patterns is None:
        return rule.tool == NETWORK
    return not wanted.subdomains and any(
        matches_host(one, wanted.host) and one.port in {None, wanted.port}
        for one in _patterns([rule])
    )


def suggest_network_rule(wanted: str) -> str:
    """Return the narrowest rule that allows the hosts of an argument."""
    return NETWORK if wanted.strip() == "*" else f"{NETWORK}({wanted.strip().lower()})"


def _covers(pattern: HostPattern, wanted: HostPattern) -> bool:
    if pattern == EVERY_HOST:
        return True
    if wanted == EVERY_HOST or pattern.port != wanted.port:
        return False
    if wanted.subdomains and wanted.host == pattern.host:
        return pattern.subdomains
    return matches_host(pattern, wanted.host) and (pattern.subdomains or not wanted.subdomains)


def _patterns(rules: Iterable[Rule]) -> Sequence[HostPattern]:
    found: list[HostPattern] = []
    for rule in rules:
        if rule.tool == NETWORK:
            given = [EVERY_HOST] if rule.patterns is None else rule.patterns
            found += [one for one in given if isinstance(one, HostPattern)]
    return found

"""The permission rules against a table of commands, paths and addresses, and the modes."""

import json
import re
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import (
    Allowed,
    ApprovalNeeded,
    Denied,
    Policy,
    Verdict,
    call_hash,
    evaluate_call,
    matches_call,
)
from internal.agent.domain.permissions.targets import Risk
from internal.agent.domain.tools import ToolSpec, targets_by_tool
from internal.tools.registry import TOOLS
from tests import ROOT
from tests.unit.agent.domain.permissions.cases import ALLOW, ALLOWING, Row
from tests.unit.agent.domain.permissions.deny_cases import DENY, DENYING

SPECS = {each.spec.name: each.spec for each in TOOLS}
TARGETS = targets_by_tool(SPECS.values())
_LETTERS = {Allowed: "A", Denied: "D", ApprovalNeeded: "N"}


def shell(policy: Policy, command: str) -> Verdict:
    return evaluate_call(policy, SPECS["shell"], {"command": command})


def evaluate(policy: Policy, tool: str, risk: Risk, arguments: dict[str, Any]) -> Verdict:
    """Evaluate a call of a tool with this risk in place of its own."""
    spec = SPECS.get(tool) or ToolSpec(tool, "", {}, risk)
    return evaluate_call(policy, msgspec.structs.replace(spec, risk=risk), arguments)


def wrong_verdicts(policy: Policy, rows: Sequence[Row]) -> list[tuple[Row, Verdict]]:
    """Return the rows with a wrong verdict, with that verdict."""
    verdicts = [(row, shell(policy, row.command)) for row in rows]
    return [(row, verdict) for row, verdict in verdicts if _LETTERS[type(verdict)] != row.expected]


def test_allow_rules() -> None:
    assert wrong_verdicts(Policy(allow=ALLOW), ALLOWING) == []


def test_deny_rules_win_even_in_full_mode() -> None:
    policy = Policy(mode=Mode.ALL, allow=("shell",), deny=DENY)
    assert wrong_verdicts(policy, DENYING) == []


def test_the_table_is_large_and_has_no_duplicates() -> None:
    assert len(ALLOWING) + len(DENYING) >= 250
    for table in (ALLOWING, DENYING):
        assert len({row.command for row in table}) == len(table)


def test_the_suggested_rules_allow_the_command() -> None:
    commands = [row.command for row in ALLOWING if row.expected == "N"]
    verdicts = {command: shell(Policy(allow=ALLOW), command) for command in commands}
    suggested = {
        command: verdict.rules
        for command, verdict in verdicts.items()
        if isinstance(verdict, ApprovalNeeded)
    }
    assert suggested.keys() == set(commands)
    assert any(suggested.values())
    refused = {
        command: rules
        for command, rules in suggested.items()
        if rules and not isinstance(shell(Policy(allow=(*ALLOW, *rules)), command), Allowed)
    }
    assert refused == {}


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("rm -rf x", ("shell(rm -rf x)",)),
        ("rm 'a b' '*'", ("shell(rm 'a b' '*')",)),
        ("rm ./*.py", ("shell(rm ./*.py)",)),
        ("rm x && mv a b", ("shell(rm x)", "shell(mv a b)")),
        ("rm x; rm x", ("shell(rm x)",)),
        ("timeout 5 rm x", ("shell(rm x)",)),
        ("rm > a", ("shell(rm)", "shell(> a)")),
        ("rm > 'a*b?'", ("shell(rm)", "shell(> 'a*b?')")),
        ("rm < /etc/x", ("shell(rm)", "shell(< /etc/x)")),
        ("[ -d x ]", ("shell([ -d x ])",)),
        ("sudo rm x", ()),
        ("python x.py", ()),
        ("rm x && sudo ls", ()),
        ("A=1 rm x", ()),
        ("rm $X", ()),
        ("rm 'x", ()),
        ("rm > a*", ()),
        ("rm > /dev/sda", ()),
        ("rm > ../a", ()),
        ("'' x", ()),
        ("rm 1" + "".join(f"; rm {n}" for n in range(2, 30)), ()),
    ],
)
def test_the_narrowest_rules_are_suggested(command: str, rules: tuple[str, ...]) -> None:
    verdict = shell(Policy(), command)
    assert isinstance(verdict, ApprovalNeeded)
    assert verdict.rules == rules
    assert verdict.rule == " and ".join(rules)
    if rules:
        assert isinstance(shell(Policy(allow=rules), command), Allowed)


def test_reasons_escape_invisible_characters_and_count_omitted_parts() -> None:
    verdict = shell(Policy(), "rm \u202ex\x1b")
    assert isinstance(verdict, ApprovalNeeded)
    assert "\\u202e" in verdict.reason
    assert "\u202e" not in verdict.reason
    many = shell(Policy(), "; ".join(f"rm {n}" for n in range(20)))
    assert isinstance(many, ApprovalNeeded)
    assert "and 4 more" in many.reason
    assert "…" in many.reason
    kept = shell(Policy(), "A=1; ls > x; cat < /y")
    assert isinstance(kept, ApprovalNeeded)
    assert "A=1 (it sets a variable for what follows)" in kept.reason
    assert "write x" in kept.reason
    assert "read /y" in kept.reason


def test_allowed_names_its_rules() -> None:
    assert shell(Policy(allow=ALLOW), "git status; ls; ls") == Allowed(
        "shell(git status) and shell(ls *)"
    )
    assert shell(Policy(), "> /dev/null") == Allowed()
    assert shell(Policy(allow=("shell",)), "sudo $X > /dev/sda") == Allowed("shell")
    assert isinstance(shell(Policy(allow=("shell",)), "sudo ("), ApprovalNeeded)


RISKS: dict[Risk, str] = {
    "read": "list_dir",
    "ui": "plan",
    "write": "write_file",
    "exec": "shell",
    "net": "web_fetch",
}
ARGUMENTS: dict[str, Any] = {"command": "ls", "path": "a", "url": "https://a.example/"}


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (Mode.ASK, "AANNN"),
        (Mode.PLAN, "AADDD"),
        (Mode.EDIT, "AAANN"),
        (Mode.RUN, "AANNN"),
        (Mode.DENY, "AADDD"),
        (Mode.ALL, "AAAAA"),
    ],
)
def test_modes(mode: Mode, expected: str) -> None:
    verdicts = [evaluate(Policy(mode=mode), t, r, ARGUMENTS) for r, t in RISKS.items()]
    assert "".join(_LETTERS[type(verdict)] for verdict in verdicts) == expected


def test_files_that_configure_programs_are_asked_about_where_others_are_changed() -> None:
    for isolated in (True, False):
        call = {"path": "AGENTS.md", "content": ""}
        verdicts = [
            evaluate_call(Policy(mode), SPECS["write_file"], call, isolated=isolated)
            for mode in (Mode.EDIT, Mode.ALL)
        ]
        assert [_LETTERS[type(each)] for each in verdicts] == ["N", "A"]


def test_in_the_sandbox_commands_and_changes_run_unasked() -> None:
    policy = Policy(mode=Mode.RUN, deny=("shell(rm *)",))

    def letters(tool: str, **arguments: Any) -> str:
        return _LETTERS[type(evaluate_call(policy, SPECS[tool], arguments, isolated=True))]

    assert letters("shell", command="make $X | sudo tee x") == "N"  # the deny rule may match
    assert letters("shell", command="make && ./build.sh > out/x") == "A"
    assert letters("shell", command="ls; rm x") == "D"
    assert letters("write_file", path="src/a.py", content="") == "A"
    assert letters("write_file", path="output/a.md", content="") == "A"
    assert letters("web_fetch", url="https://a.example/") == "N"
    for path in ("AGENTS.md", "./claude.MD", "a/../.mcp.json", ".larkspur/x", "sub/AGENTS.md"):
        assert letters("write_file", path=path, content="") == "N"
    assert letters("write_file", path=".git/hooks/pre-commit", content="") == "D"
    # a tool of the same risk that does not run in the sandbox
    other = ToolSpec("deploy", "", {}, "exec")
    assert isinstance(evaluate_call(policy, other, {}, isolated=True), ApprovalNeeded)


def test_deny_wins_in_every_mode() -> None:
    for mode in Mode:
        for risk, tool in RISKS.items():
            policy = Policy(mode=mode, allow=(tool,), deny=(tool,))
            assert isinstance(evaluate(policy, tool, risk, ARGUMENTS), Denied)


TRUSTING = ToolSpec("trust_source", "", {}, "read", trusts="source")


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode is not Mode.DENY])
def test_what_is_trusted_needs_the_owner_in_every_mode_whatever_a_rule_allows(mode: Mode) -> None:
    policy = Policy(mode, allow=("trust_source",))
    verdict = evaluate_call(policy, TRUSTING, {"source": "a\u202eb"}, isolated=True)
    assert isinstance(verdict, ApprovalNeeded)
    assert (verdict.code, verdict.about, verdict.rules) == ("owner", "a\\u202eb", ())


def test_trust_is_denied_by_a_rule_and_in_deny_mode() -> None:
    for policy in (Policy(deny=("trust_source",)), Policy(Mode.DENY, allow=("trust_source",))):
        assert isinstance(evaluate_call(policy, TRUSTING, {"source": "a"}), Denied)


def test_plan_mode_overrides_allow_rules() -> None:
    verdict = shell(Policy(mode=Mode.PLAN, allow=("shell",)), "ls")
    assert isinstance(verdict, Denied)
    assert verdict.reason.startswith("plan mode: ")


def test_deny_mode_names_the_rules_that_would_allow() -> None:
    verdict = shell(Policy(mode=Mode.DENY), "rm 'a b' > x")
    assert isinstance(verdict, Denied)
    assert "--allow 'shell(rm '\\''a b'\\'')' --allow 'shell(> x)' would" in verdict.reason
    verdict = shell(Policy(mode=Mode.DENY), "sudo rm")
    assert isinstance(verdict, Denied)
    assert "No rule may allow it." in verdict.reason
    assert isinstance(shell(Policy(mode=Mode.DENY, allow=("shell(ls)",)), "ls"), Allowed)


PATHS = [
    ("notes/**", "notes/a.md", "A"),
    ("notes/**", "notes/a/b.md", "A"),
    ("notes/**", "./notes//a.md", "A"),
    ("notes/*", "notes/a.md", "A"),
    ("notes/?.md", "notes/a.md", "A"),
    ("**/*.md", "a.md", "A"),
    ("**/*.md", "a/b/c.md", "A"),
    ("**", "a", "A"),
    ("a[b", "a[b", "A"),
    ("notes/*", "notes/a/b.md", "N"),
    ("notes/**", "notesx/a", "N"),
    ("notes/**", "Notes/a", "N"),
    ("notes/**", "notes/../a", "N"),
    ("notes/**", "notes/b/../a", "N"),
    ("notes/**", "/notes/a", "N"),
    ("**", "/etc/passwd", "N"),
    ("**", "..", "N"),
    ("**", "", "N"),
    ("**", "a\x00b", "N"),
    ("**", "a\\..\\b", "N"),
    ("notes/?.md", "notes//.md", "N"),
    ("notes/**", "notes/.git/../../x", "N"),
    ("notes/**", "./notes/./a", "A"),
    ("notes/**", "notes\\..\\x", "N"),
    ("notes/**", "~/notes/a", "N"),
    ("notes/**", "notes/a\u200b", "N"),
    ("notes/**", "notes/\u202egpj.exe", "N"),
    ("notes/**", "\uff4eotes/a", "N"),
    ("notes/**", "n\u043etes/a", "N"),
    ("notes/**", "notes\u2215a", "N"),
    ("notes/*", "notes/a/../b", "N"),
    ("**", "/proc/self/environ", "N"),
    ("**", "//etc/passwd", "N"),
    ("*", ".env", "A"),
    ("caf\u00e9/*", "cafe\u0301/a", "N"),
]


@pytest.mark.parametrize(("glob", "path", "expected"), PATHS)
def test_path_allow(glob: str, path: str, expected: str) -> None:
    policy = Policy(allow=(f"write_file({glob})",))
    verdict = evaluate(policy, "write_file", "write", {"path": path})
    assert _LETTERS[type(verdict)] == expected
    other = evaluate(policy, "edit_file", "write", {"path": path})
    assert isinstance(other, ApprovalNeeded)


@pytest.mark.parametrize(
    ("glob", "path", "denied"),
    [
        ("secret/**", "secret/a", True),
        ("secret/**", "./x/../secret/a", True),
        ("secret/**", "../ws/secret/a", True),
        ("secret/**", "/home/ws/secret/a", True),
        ("secret/**", "SECRET/a", True),
        ("secret/**", "x\\..\\secret\\a", True),
        ("/etc/**", "/etc/passwd", True),
        ("/etc/**", "//etc/passwd", True),
        ("/etc/**", "../../etc/passwd", True),
        (".env", "a/../.env", True),
        ("**/.env", "a/b/.env", True),
        ("secret/**", "x/./..//secret/./a", True),
        ("secret/**", "/proc/self/cwd/secret/a", True),
        ("secret/**", "se\u200bcret/a", True),
        ("secret/**", "\uff53ecret/a", True),
        ("caf\u00e9/**", "cafe\u0301/a", True),
        ("cafe\u0301/**", "CAF\u00c9/a", True),
        (".env", ".ENV", True),
        (".env", "./.env/.", True),
        (".env", ".e\u00adnv", True),
        ("secret/**", "secrets/a", False),
        ("secret/**", "notes/a", False),
        ("/etc/**", "etc/passwd", False),
    ],
)
def test_path_deny(glob: str, path: str, denied: bool) -> None:
    policy = Policy(mode=Mode.ALL, deny=(f"read_file({glob})",))
    verdict = evaluate(policy, "read_file", "read", {"path": path})
    assert isinstance(verdict, Denied) is denied


def test_a_search_is_denied_above_a_denied_folder() -> None:
    policy = Policy(mode=Mode.ALL, deny=("search_files(a/secret/*)",))
    for path, denied in [(".", 1), ("a", 1), ("./a", 1), ("..", 1), ("b", 0), ("a/b", 0)]:
        verdict = evaluate(policy, "search_files", "read", {"path": path})
        assert isinstance(verdict, Denied) is bool(denied), path
    assert isinstance(evaluate(policy, "search_files", "read", {}), Denied)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("notes/a.md", "write_file(notes/a.md)"),
        ("./notes//a.md", "write_file(notes/a.md)"),
        ("a b", "write_file(a b)"),
        ("a*", ""),
        ("a[1]", ""),
        (" a", ""),
        ("/a", ""),
        ("../a", ""),
        ("a/../b", ""),
        ("a\u202eb", ""),
    ],
)
def test_path_suggestions(path: str, rule: str) -> None:
    verdict = evaluate(Policy(), "write_file", "write", {"path": path})
    assert isinstance(verdict, ApprovalNeeded)
    assert verdict.rule == rule
    if rule:
        again = evaluate(Policy(allow=verdict.rules), "write_file", "write", {"path": path})
        assert again == Allowed(rule)


HOSTS = [
    ("example.com", "https://example.com", "A"),
    ("example.com", "http://example.com/a?b#c", "A"),
    ("example.com", "HTTPS://Example.COM/", "A"),
    ("example.com", "https://example.com:443/", "A"),
    ("example.com", "https://example.com?x", "A"),
    ("example.com:8443", "https://example.com:8443/", "A"),
    ("*.example.com", "https://a.example.com/", "A"),
    ("*.example.com", "https://a.b.example.com/", "A"),
    ("xn--fsq.example", "https://xn--fsq.example/", "A"),
    ("example.com", "https://example.com:80/", "N"),
    ("example.com", "https://example.com:8443/", "N"),
    ("example.com:8443", "https://example.com/", "N"),
    ("example.com", "https://a.example.com/", "N"),
    ("*.example.com", "https://example.com/", "N"),
    ("*.example.com", "https://aexample.com/", "N"),
    ("example.com", "https://example.com.evil.org/", "N"),
    ("example.com", "https://evil.org/example.com", "N"),
    ("example.com", "https://evil.org#example.com", "N"),
    ("example.com", "https://example.com@evil.org/", "N"),
    ("example.com", "https://evil.org@example.com/", "N"),
    ("example.com", "https://evil.org\\@example.com/", "N"),
    ("example.com", "https://example.com\\.evil.org/", "N"),
    ("example.com", "https://example.com\t.evil.org/", "N"),
    ("example.com", "https://example.com/ x", "N"),
    ("example.com", " https://example.com/", "N"),
    ("example.com", "https://example.com./", "N"),
    ("example.com", "https:/example.com/", "N"),
    ("example.com", "https:example.com", "N"),
    ("example.com", "//example.com/", "N"),
    ("example.com", "ftp://example.com/", "N"),
    ("example.com", "https://ex\u00e4mple.com/", "N"),
    ("example.com", "https://\uff45xample.com/", "N"),
    ("example.com", "https://example\u3002com/", "N"),
    ("example.com", "https://ex%61mple.com/", "N"),
    ("example.com", "https://example.com:/", "N"),
    ("example.com", "https://[::1]/", "N"),
    ("example.com", "https://exam\u0000ple.com/", "N"),
    ("example.com", "", "N"),
    ("example.com", "https://example.com:443@evil.org/", "N"),
    ("example.com", "https://example.com%2f@evil.org/", "N"),
    ("example.com", "https://example.com%00.evil.org/", "N"),
    ("example.com", "https://example.com;@evil.org/", "N"),
    ("example.com", "https://evil.org?example.com", "N"),
    ("example.com", "https://evil.org/#@example.com", "N"),
    ("example.com", "https://evil.org\\#@example.com/", "N"),
    ("example.com", "https://evil.org&@example.com/", "N"),
    ("example.com", "https://evil.org/.example.com", "N"),
    ("example.com", "https://example.com\uff0fevil.org", "N"),
    ("example.com", "https://example.com\u2044evil.org", "N"),
    ("example.com", "https://ex\u0430mple.com/", "N"),
    ("example.com", "https://example.com\r\nHost: evil.org", "N"),
    ("example.com", "https://example.com/\u202emoc.live", "N"),
    ("example.com", "https://example.com:65979/", "N"),
    ("example.com", "https://example.com:+443/", "N"),
    ("example.com", "https://example.com:443evil.org/", "N"),
    ("example.com", "https://[example.com]/", "N"),
    ("example.com", "https://*.example.com/", "N"),
    ("example.com", "view-source:https://example.com/", "N"),
    ("example.com", "https://example.com/@evil.org", "A"),
    ("example.com", "https://example.com//evil.org", "A"),
]


@pytest.mark.parametrize(("host", "url", "expected"), HOSTS)
def test_host_allow(host: str, url: str, expected: str) -> None:
    verdict = evaluate(Policy(allow=(f"web_fetch({host})",)), "web_fetch", "net", {"url": url})
    assert _LETTERS[type(verdict)] == expected


@pytest.mark.parametrize(
    ("host", "url", "expected"),
    [
        ("evil.org", "https://evil.org/", "D"),
        ("evil.org", "https://evil.org:8443/", "D"),
        ("evil.org:8443", "https://evil.org:8443/", "D"),
        ("evil.org:8443", "https://evil.org/", "A"),
        ("evil.org", "https://EVIL.org./", "D"),
        ("evil.org", "https://a@evil.org:99/", "D"),
        ("evil.org", "https://a.example\\@evil.org/", "D"),
        ("evil.org", "https://evil.org\\@a.example/", "D"),
        ("evil.org", "https://e%76il.org/", "D"),
        ("evil.org", "https://\uff45vil.org/", "D"),
        ("evil.org", "https://evil\u3002org/", "D"),
        ("evil.org", " h\nttps://ev\til.org/", "D"),
        ("evil.org", "https://good.org%2f@evil.org/", "D"),
        ("evil.org", "https://good.org;@evil.org/", "D"),
        ("evil.org", "https://evil.org\\#@good.org/", "D"),
        ("evil.org", "https://evil.org/\u202e", "D"),
        ("evil.org", "https:/evil.org/", "D"),
        ("*.evil.org", "https://a.evil.org/", "D"),
        ("*.evil.org", "https://evil.org/", "A"),
        ("evil.org", "https://good.org/", "A"),
        ("evil.org", "https://\u200d..x/", "N"),
        ("evil.org", "", "N"),
    ],
)
def test_host_deny(host: str, url: str, expected: str) -> None:
    policy = Policy(mode=Mode.ALL, deny=(f"web_fetch({host})",))
    verdict = evaluate(policy, "web_fetch", "net", {"url": url})
    assert _LETTERS[type(verdict)] == expected


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("https://Example.com/a", "web_fetch(example.com)"),
        ("https://example.com:8443/a", "web_fetch(example.com:8443)"),
        ("https://a@example.com/", ""),
    ],
)
def test_host_suggestions(url: str, rule: str) -> None:
    verdict = evaluate(Policy(), "web_fetch", "net", {"url": url})
    assert isinstance(verdict, ApprovalNeeded)
    assert verdict.rule == rule
    if rule:
        assert evaluate(Policy(allow=(rule,)), "web_fetch", "net", {"url": url}) == Allowed(rule)


@pytest.mark.parametrize(
    ("tool", "rule"),
    [("shell", "shell(a)"), ("write_file", "write_file(a)"), ("web_fetch", "web_fetch(a)")],
)
def test_arguments_of_a_wrong_type_are_never_allowed_by_a_pattern(tool: str, rule: str) -> None:
    for odd in (None, 1, ["a"], {"a": "a"}, True):
        arguments = {"command": odd, "path": odd, "url": odd}
        asked = evaluate(Policy(allow=(rule,)), tool, "exec", arguments)
        assert isinstance(asked, ApprovalNeeded)
        assert not asked.rules
        vague = evaluate(Policy(mode=Mode.ALL, deny=(rule,)), tool, "exec", arguments)
        assert isinstance(vague, ApprovalNeeded)


def test_a_tool_without_targets_is_allowed_as_a_whole() -> None:
    verdict = evaluate(Policy(), "crm.update", "write", {"path": "x"})
    assert isinstance(verdict, ApprovalNeeded)
    assert verdict.rules == ("crm.update",)
    assert evaluate(Policy(allow=("crm.update",)), "crm.update", "write", {}) == Allowed(
        "crm.update"
    )
    odd = evaluate(Policy(), "no tool (", "write", {})
    assert isinstance(odd, ApprovalNeeded)
    assert not odd.rules


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("shell(sudo systemctl restart x)", "sudo systemctl restart x"),
        ("shell(bash -c 'make all')", "bash -c 'make all'"),
        ("shell(python --version)", "python --version"),
        ("shell(python build.py *)", "python build.py --fast"),
        ("shell(awk '{print $1}' *)", "awk '{print $1}' x"),
        ("shell(find . -delete)", "find . -delete"),
        ("shell(git -c a=b log *)", "git -c a=b log -n 1"),
        ("shell(git switch -c *)", "git switch -c topic"),
        ("shell(echo '*')", 'echo "*"'),
        (" shell( git   status ) ", "git status"),
        ("shell(> /tmp/x)", "> /tmp/x"),
    ],
)
def test_an_exact_rule_allows_even_a_wrapper_or_interpreter(rule: str, command: str) -> None:
    assert shell(Policy(allow=(rule,)), command) == Allowed(rule)


def test_a_policy_survives_storage() -> None:
    policy = Policy(mode=Mode.EDIT, allow=("shell(git log *)",), deny=("web_fetch",))
    assert msgspec.json.decode(msgspec.json.encode(policy), type=Policy) == policy
    with pytest.raises(msgspec.ValidationError, match="is not a rule"):
        msgspec.json.decode(b'{"deny": ["shell("]}', type=Policy)


@pytest.mark.parametrize(
    "verdict", [Allowed(), Denied("no"), ApprovalNeeded("why", ("shell(ls)",))]
)
def test_verdicts_survive_storage(verdict: Verdict) -> None:
    stored = msgspec.json.encode(verdict)
    assert msgspec.json.decode(stored, type=Allowed | Denied | ApprovalNeeded) == verdict


def test_the_call_hash_identifies_tool_arguments_and_workspace() -> None:
    one = call_hash("shell", {"command": "ls", "timeout": 1}, "ws")
    assert one == call_hash("shell", {"timeout": 1, "command": "ls"}, "ws")
    assert len(one) == 64
    others = [
        call_hash("shell2", {"command": "ls", "timeout": 1}, "ws"),
        call_hash("shell", {"command": "ls ", "timeout": 1}, "ws"),
        call_hash("shell", {"command": "ls", "timeout": "1"}, "ws"),
        call_hash("shell", {"command": "ls", "timeout": True}, "ws"),
        call_hash("shell", {"command": "ls", "timeout": 1}, "ws2"),
        call_hash("shell", {"command": "ls", "timeout": {"b": 1, "a": 2}}, "ws"),
    ]
    assert len({one, *others}) == 7
    assert call_hash("t", {"a": {"x": 1, "y": 2}}, "") == call_hash(
        "t", {"a": {"y": 2, "x": 1}}, ""
    )
    odd = json.loads('{"a": "\\ud800", "b": NaN}')
    assert call_hash("t", odd, "") == call_hash("t", odd, "")


def test_the_rules_in_the_documentation_are_rules() -> None:
    page = ROOT / "docs" / "permissions.md"
    rules = re.findall(r"^\| `([^`]+\([^`]+\))` \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rules) >= 9
    Policy(allow=tuple(rules), deny=tuple(rules)).check(TARGETS)


@pytest.mark.parametrize(
    ("command", "detail", "code", "about"),
    [
        ("make x", "", "", ""),
        ("git log && make x", "no rule allows make x", "no_rule", "make x"),
        ("make x && make y", "no rule allows make x; make y", "no_rule", "make x; make y"),
        (
            "if true",
            "shell if true cannot be checked: it is not valid shell syntax.",
            "unchecked",
            "it is not valid shell syntax",
        ),
    ],
)
def test_the_reason_detail_omits_what_the_call_shows(
    command: str, detail: str, code: str, about: str
) -> None:
    verdict = evaluate(Policy(allow=("shell(git log *)",)), "shell", "exec", {"command": command})
    assert isinstance(verdict, ApprovalNeeded)
    assert (verdict.reason_detail, verdict.code, verdict.about) == (detail, code, about)


WORST = [
    "a;" * 3_999,
    "rm;" * 3_999,
    "a " * 3_999,
    "a|" * 4_000,
    "a\n" * 3_999,
    "a #b\n" * 1_300,
    "cat <<A\nx\nA\n" * 600,
    "cat " + "<<A " * 1_300,
    ">a " * 2_000,
    "a >b;" * 1_300,
    "sudo " * 3_999 + "x",
    "eval " * 3_999 + "x",
    "env " * 3_999 + "x",
    "xargs ls " * 1_900,
    "sudo " + "git -a " * 1_300,
    "sudo " + "sh -c " * 1_300,
    "sudo " + "'a,b=c' " * 600,
    "sudo " + "$a, " * 1_300,
    "sudo 'rm" + " a,rm" * 1_900 + "'",
    "sudo " + "'form;$x' " * 600,
    "sudo " + "/bin/r*x " * 900,
    "echo " + '"$(' * 1_300,
    "echo " + '"$(echo ' * 600 + "a" * 50_000 + ')"' * 600,
    "echo " + "{" * 3_900 + "a" * 60_000,
    "tar " + "I" * 60_000 + "!",
    "find " + "--a " * 1_300,
    "case a=(" * 1_000,
    "select a=(" * 1_000,
    "<" * 65_000,
    "$" * 65_000,
    "ls >" + "a/" * 2_000,
    "ls " + ">a/b/c/d/e/f " * 300,
]


@pytest.mark.parametrize(
    "command", WORST, ids=lambda text: text[:20].encode("unicode_escape").decode()
)
def test_the_worst_commands_are_judged_in_bounded_time(command: str) -> None:
    programs = [f"shell(program{n} *)" for n in range(40)]
    files = [f"shell(> **/secret{n}/*a*b*)" for n in range(8)]
    rules = (*programs, *files, "shell(rm x *)", "shell(git push *)")
    start = time.process_time()
    shell(Policy(mode=Mode.ALL, deny=rules), command)
    shell(Policy(allow=rules), command)
    assert time.process_time() - start < 2.0  # measured: at most 0.3 s


@pytest.mark.parametrize(
    ("rule", "command", "matches"),
    [
        ("shell", "ls", True),
        ("shell(git push *)", "git push origin", True),
        ("shell(git push *)", "true && git push origin", True),
        ("shell(git push *)", "git pull", False),
        ("shell(git push *)", "$(echo git) push", True),  # unknown
        ("write_file", "git push origin", False),
    ],
)
def test_a_rule_is_about_the_calls_that_it_may_match(
    rule: str, command: str, matches: bool
) -> None:
    assert matches_call(rule, SPECS["shell"], {"command": command}) is matches


@pytest.mark.parametrize(
    ("rule", "letters"),
    [
        ("mcp__git", "ADN"),
        ("mcp__git__log", "ADN"),
        ("mcp__git__commit", "NAN"),
        ("mcp__gi", "NAN"),
        ("mcp", "NAN"),
        ("mcp__git__log(x)", "NNN"),
    ],
)
def test_a_rule_names_one_tool_of_a_server_or_all(rule: str, letters: str) -> None:
    git, other = (ToolSpec(name, "", {}, "exec") for name in ("mcp__git__log", "mcp__other__log"))
    verdicts = (
        evaluate_call(Policy(allow=(rule,)), git, {}),
        evaluate_call(Policy(mode=Mode.ALL, deny=(rule,)), git, {}),
        evaluate_call(Policy(allow=(rule,)), other, {}),
    )
    assert "".join(_LETTERS[type(each)] for each in verdicts) == letters

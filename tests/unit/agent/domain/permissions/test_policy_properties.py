"""Properties of the permission rules that hold for every command."""

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import (
    Allowed,
    ApprovalNeeded,
    Denied,
    Policy,
    Verdict,
    evaluate_call,
)
from internal.agent.domain.permissions.shell.parser import ParsedCommand, parse_script
from internal.agent.domain.permissions.shell.words import decode_from_parser, encode_for_parser
from internal.agent.domain.text import find_invisible
from internal.agent.domain.tools import ToolSpec
from internal.tools.registry import TOOLS
from tests.support.property_examples import examples
from tests.unit.agent.domain.permissions.cases import ALLOW, ALLOWING
from tests.unit.agent.domain.permissions.deny_cases import DENY, DENYING

SPECS = {each.spec.name: each.spec for each in TOOLS}
COMMANDS = [row.command for row in (*ALLOWING, *DENYING) if len(row.command) < 500]
PIECES = [
    "git", "status", "rm", "x", "echo", "sudo", "sh", "-c", "find", "-exec", "a*", "*", "$X", " ",
    " ", " ", "\n", "\t", ";", "|", "&", "&&", "||", "(", ")", "{", "}", "<", ">", ">>", "<<E",
    "\nE\n", "<<<", "'", '"', "`", "$(", "${", "$((", "))", "\\", "#", "!", "=", "A=1", "[", "]",
    "[[", "]]", "if", "then", "fi", "for", "in", "do", "done", "case", "esac", "2>&1", "/dev/null",
    "bash", "xargs", "env", "source", "/dev/stdin", "-s", "-o", "posix", "EDITOR=rm", "\\ ", "<&-",
    "<<'E'", "<<-E", "<<E F", "\n\tE\n", "\\\n",
    "\"$(cat <<'E'\n", '\nE\n)"', "x=(",
    "x[1", "2]=x", "<(",
    "\u00a0", "\u202e", "é", "$'", "\x00", "~", "--", "-", ":", "f()", "out/x", "timeout 5",
]  # fmt: skip

texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
    st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=3).flatmap(
        lambda parts: st.sampled_from(["; ", "\n", " | ", " && ", " & "]).map(
            lambda joint: joint.join(parts)
        )
    ),
    st.text(max_size=60),
)
allow_rules = st.lists(st.sampled_from([*ALLOW, "shell"]), max_size=6).map(tuple)
deny_rules = st.lists(st.sampled_from([*DENY, "shell"]), max_size=4).map(tuple)
modes = st.sampled_from(list(Mode))
words = st.one_of(
    st.sampled_from(["git", "status", "-v", "a b", "*", "$X", "'", "rm", "out/x", "é", ";", "~"]),
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=8)
    .filter(lambda text: not find_invisible(text))  # such a command is refused unread
    .filter(lambda text: {"%", "@"}.isdisjoint(text[1:]))  # no names for the grammar: x%y, x@y
    .map("{}1".format),  # never a reserved word such as `else`, which loses its meaning in quotes
)
COMMAND_FORMS = [
    "{}", "sudo {}", "env {}", "env A=1 {}", "nice -n 5 {}", "timeout 5 {}", "command {}",
    "xargs {}", "chronic {}", "unknown {}", "find . -exec {} +", "( {} )", "{{ {}; }}", "! {}",
    "{} &", "A=1 {}", "if {}; then ls; fi", "while {}; do ls; done", "case $({}) in x) ls;; esac",
    "ls; {}", "ls | {}", "echo $({})", 'echo "$({})"', "cat <({})", "f() {{ {}; }}; f", "<&- {}",
    "2>/dev/null {}", "for x in a; do {}; done", "A=$({})",
]  # fmt: skip
TEXT_FORMS = [
    "sh -c {}", "bash -euo pipefail -c {}", "bash -lc {}", "eval {}", "trap {} EXIT",
    "echo {} | sh", "echo {} | bash -euo pipefail", "bash -s a --help <<< {}",
    "source /dev/stdin <<< {}", "ssh host {}", "xargs -I% sh -c {}", "GIT_EDITOR={} git commit",
    "export EDITOR={}; git commit", "pee {}", "git -c alias.x='!'{} x", "unknown --run={}",
    "find . -exec sh -c {} +",
]  # fmt: skip
starts = st.one_of(
    st.sampled_from(COMMAND_FORMS).map(lambda form: form.format),
    st.sampled_from(TEXT_FORMS).map(lambda form: lambda text: form.format(shlex.quote(text))),
)


def shell(policy: Policy, command: str) -> Verdict:
    return evaluate_call(policy, SPECS["shell"], {"command": command})


def openness(verdict: Verdict) -> int:
    return (Denied, ApprovalNeeded, Allowed).index(type(verdict))


@given(texts, modes, allow_rules, deny_rules)
@examples(600)
def test_evaluation_never_raises(
    text: str, mode: Mode, allow: tuple[str, ...], deny: tuple[str, ...]
) -> None:
    verdict = shell(Policy(mode=mode, allow=allow, deny=deny), text)
    assert openness(verdict) in {0, 1, 2}
    specs = [SPECS[name] for name in ("read_file", "web_fetch", "search_files")]
    for known in (*specs, ToolSpec("plan", "", {}, "net"), ToolSpec(text, "", {}, "net")):
        spec = msgspec.structs.replace(known, risk="net")
        evaluate_call(Policy(mode=mode), spec, {"path": text, "url": text})
        rules = ("read_file(a/**)", "web_fetch(a.example)", "search_files(**/x)")
        evaluate_call(Policy(deny=rules, allow=rules), spec, {"path": text, "url": text})


@given(texts, modes, allow_rules, allow_rules, deny_rules)
@examples(400)
def test_an_allow_rule_never_overrides_a_denial(
    text: str, mode: Mode, allow: tuple[str, ...], more: tuple[str, ...], deny: tuple[str, ...]
) -> None:
    before = shell(Policy(mode=mode, allow=allow, deny=deny), text)
    after = shell(Policy(mode=mode, allow=allow + more, deny=deny), text)
    assert openness(after) >= openness(before)
    if mode is not Mode.DENY and isinstance(before, Denied):  # deny mode denies what is not allowed
        assert isinstance(after, Denied)


@given(texts, modes, allow_rules, deny_rules, deny_rules)
@examples(400)
def test_a_deny_rule_never_allows_anything(
    text: str, mode: Mode, allow: tuple[str, ...], deny: tuple[str, ...], more: tuple[str, ...]
) -> None:
    before = shell(Policy(mode=mode, allow=allow, deny=deny), text)
    after = shell(Policy(mode=mode, allow=allow, deny=deny + more), text)
    assert openness(after) <= openness(before)


@given(
    st.sampled_from(["rm x", "/bin/rm x", "r''m x", "git push", "git -C a push"]),
    st.lists(starts, max_size=4),
)
@examples(600)
def test_a_denied_command_is_not_allowed_however_it_is_started(
    command: str, forms: list[Callable[[str], str]]
) -> None:
    for form in forms:
        command = form(command)
    policy = Policy(mode=Mode.ALL, deny=("shell(rm *)", "shell(git push *)"))
    assert not isinstance(shell(policy, command), Allowed), command


@given(texts, allow_rules)
@examples(600)
def test_suggested_rules_allow(text: str, allow: tuple[str, ...]) -> None:
    verdict = shell(Policy(allow=allow), text)
    if isinstance(verdict, ApprovalNeeded) and verdict.rules:
        assert isinstance(shell(Policy(allow=allow + verdict.rules), text), Allowed)


@given(st.lists(words, min_size=1, max_size=6), allow_rules, deny_rules)
@examples(400)
def test_quoting_changes_nothing(
    parts: list[str], allow: tuple[str, ...], deny: tuple[str, ...]
) -> None:
    policy = Policy(allow=allow, deny=deny)
    quoted = shlex.join(parts)
    single = " ".join("'" + part.replace("'", "'\"'\"'") + "'" for part in parts)
    double = " ".join(
        '"' + "".join(f"\\{c}" if c in '"\\$`' else c for c in p) + '"' for p in parts
    )
    split = " ".join("''".join(shlex.quote(char) for char in part) for part in parts)
    verdicts = {openness(shell(policy, text)) for text in (quoted, single, double, split)}
    assert len(verdicts) == 1


@given(st.lists(words, min_size=1, max_size=6))
@examples(300)
def test_quoted_words_keep_their_value(parts: list[str]) -> None:
    script = parse_script(shlex.join(parts))
    assert not script.problem
    (command,) = script.parts
    assert isinstance(command, ParsedCommand)
    if "=" not in parts[0]:
        assert [word.text for word in command.words] == parts


@given(texts, st.sampled_from(["; {}", "\n{}", " && {}", " | {}", " & {}"]))
@examples(300)
def test_every_joined_command_is_evaluated(text: str, joint: str) -> None:
    policy = Policy(allow=ALLOW)
    longer = text + joint.format("rm -rf x")
    if isinstance(shell(policy, text), Allowed):
        verdict = shell(policy, longer)
        # what stands in a comment or a here-document is not run
        swallowed = "#" in text or longer.endswith("E\n" + joint.format("rm -rf x"))
        assert swallowed or not isinstance(verdict, Allowed)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_the_parser_encoding_is_lossless_and_within_its_table(text: str) -> None:
    seen = encode_for_parser(text)
    assert all(ord(sign) < 256 and ord(sign) not in {0x85, 0xA0} for sign in seen.decode())
    assert decode_from_parser(seen) == text


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs that only record that they were run."""
    folder = tmp_path_factory.mktemp("stubs")
    for name in ("git", "make", "sort", "wc", "cat", "grep", "find", "rm", "sudo", "sh", "xargs"):
        (folder / name).write_text(f"#!/bin/bash\nprintf '{name}\\n' >> '{folder}/ran'\n")
        (folder / name).chmod(0o755)
    return folder


def run_by_bash(stubs: Path, folder: str, command: str) -> set[str]:
    """Return the programs that a real bash starts for a command."""
    (stubs / "ran").write_text("")
    subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-c", command],
        cwd=folder,
        env={"PATH": str(stubs), "HOME": folder},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    return set((stubs / "ran").read_text().split())


def ends(command: str) -> bool:
    return "while true" not in command and "until" not in command


@given(texts.filter(ends))
@examples(150)
def test_bash_runs_only_evaluated_programs(stubs: Path, text: str) -> None:
    if isinstance(shell(Policy(allow=ALLOW), text), Allowed):
        with tempfile.TemporaryDirectory() as folder:
            ran = run_by_bash(stubs, folder, text)
        assert not ran & {"rm", "sudo", "xargs"}
        assert "sh" not in ran or "sh scripts/a.sh" in text


def test_bash_runs_only_evaluated_programs_of_the_table(stubs: Path, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "a").write_text("x\n")
    allowed = [row.command for row in ALLOWING if row.expected == "A" and ends(row.command)]
    ran = run_by_bash(stubs, str(tmp_path), "\n".join(f"( {command}\n)" for command in allowed))
    assert {"git", "make", "sort"} <= ran
    assert not ran & {"rm", "sudo", "xargs"}


@pytest.fixture(scope="module")
def starters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs that start others, and of denied programs that only record that."""
    folder = tmp_path_factory.mktemp("starters")
    for name in ("rm", "sudo"):
        (folder / name).write_text(f"#!/bin/bash\nprintf '{name}\\n' >> '{folder}/ran'\n")
        (folder / name).chmod(0o755)
    for name in ("sh", "bash", "env", "xargs", "cat", "nice", "nohup", "timeout", "sort", "wc"):
        (folder / name).symlink_to(str(shutil.which(name)))
    return folder


def test_bash_starts_no_denied_program_of_the_table(starters: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n")
    allowed = [row.command for row in DENYING if row.expected == "A"]
    started = "\n".join(f"( {command}\n)" for command in [*allowed, "echo x | xargs rm"])
    assert run_by_bash(starters, str(tmp_path), started) == {"rm"}
    without = "\n".join(f"( {command}\n)" for command in allowed)
    assert run_by_bash(starters, str(tmp_path), without) == set()


@given(texts.filter(ends))
@examples(150)
def test_bash_starts_no_denied_program(starters: Path, text: str) -> None:
    policy = Policy(mode=Mode.ALL, deny=("shell(rm *)", "shell(sudo *)"))
    if isinstance(shell(policy, text), Allowed):
        with tempfile.TemporaryDirectory() as folder:
            assert not run_by_bash(starters, folder, text)

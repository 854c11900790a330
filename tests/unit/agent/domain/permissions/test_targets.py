"""Permission targets: a tool with several targets is checked on each of them, also in a Turn."""

from typing import Annotated, Any

import msgspec
import pytest

from internal.agent.domain.messages import ToolCall
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import (
    Allowed,
    ApprovalNeeded,
    Denied,
    Policy,
    Verdict,
    evaluate_call,
)
from internal.agent.domain.permissions.rules import RuleError, parse_rule
from internal.agent.domain.permissions.targets import (
    CommandTarget,
    PathTarget,
    UrlTarget,
    mcp_server,
    rule_names,
)
from internal.agent.domain.questions import Answer
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.react.steps import Act, Ask
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tools import ToolSpec, targets_by_tool
from internal.tools.tool import ToolContext, tool
from internal.tools.workspace import WorkspacePath
from tests.support.turn_driver import add_reply, last_results, next_question, run_config, start_turn


@tool(
    risk="write",
    targets=(PathTarget("source"), PathTarget("destination")),
    title={"en": "Move a file", "zh": "移动文件"},
)
async def move_file(
    context: ToolContext,
    source: Annotated[WorkspacePath, "The file."],
    destination: Annotated[WorkspacePath, "Its new path."],
) -> str:
    """Move a file."""
    return f"{source} moved to {destination}"


DOWNLOAD = ToolSpec(
    "download", "", {}, "net", targets=(UrlTarget("url"), PathTarget("path"), CommandTarget("then"))
)
COPY_ALL = ToolSpec("copy_all", "", {}, "write", targets=(PathTarget("paths", multiple=True),))
HOOK = ".git/hooks/pre-commit"


def move(policy: Policy, source: str, destination: str) -> Verdict:
    return evaluate_call(policy, move_file.spec, {"source": source, "destination": destination})


def test_a_tool_with_two_paths_needs_approval_for_both() -> None:
    verdict = move(Policy(), "a.txt", "notes/b.txt")
    assert isinstance(verdict, ApprovalNeeded)
    assert verdict.rules == ("move_file(a.txt)", "move_file(notes/b.txt)")
    assert verdict.reason == "move_file a.txt notes/b.txt needs approval."
    assert isinstance(move(Policy(allow=verdict.rules), "a.txt", "notes/b.txt"), Allowed)


@pytest.mark.parametrize(
    ("allow", "offered"),
    [
        (("move_file(a.txt)",), ("move_file(notes/b.txt)",)),
        (("move_file(notes/**)",), ("move_file(a.txt)",)),
    ],
)
def test_only_the_rules_for_uncovered_targets_are_offered(
    allow: tuple[str, ...], offered: tuple[str, ...]
) -> None:
    verdict = move(Policy(allow=allow), "a.txt", "notes/b.txt")
    assert isinstance(verdict, ApprovalNeeded)
    assert verdict.rules == offered


def test_no_rule_is_offered_when_one_target_cannot_have_one() -> None:
    for source, destination in (("../a", "b"), ("a", "/b"), ("a*", "b")):
        verdict = move(Policy(), source, destination)
        assert isinstance(verdict, ApprovalNeeded)
        assert verdict.rules == ()


def test_an_allow_rule_covers_both_paths() -> None:
    policy = Policy(allow=("move_file(notes/**)",))
    assert move(policy, "notes/a", "notes/b") == Allowed("move_file(notes/**)")
    both = Policy(allow=("move_file(a)", "move_file(b)"))
    assert move(both, "a", "b") == Allowed("move_file(a) and move_file(b)")


@pytest.mark.parametrize("mode", list(Mode))
def test_a_deny_rule_matches_either_path(mode: Mode) -> None:
    policy = Policy(mode=mode, allow=("move_file",), deny=("move_file(secret/**)",))
    for source, destination in (("secret/a", "b"), ("b", "secret/a"), ("b", "x/../Secret/a")):
        assert isinstance(move(policy, source, destination), Denied)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(
    "path",
    [
        *(HOOK, ".git", ".git/", "./.git/", "./.git/config", "sub/.GIT/x", "a/b/.Git"),
        *("a/../.git/x", "/w/.git/x", "..//.git//x", ".git/.", "a\\.git\\x", ".g\u200bit/x"),
        *("\uff0egit/x", ".git\n"),
    ],
)
def test_a_protected_folder_is_never_changed(mode: Mode, path: str) -> None:
    policy = Policy(mode=mode, allow=("move_file",))
    for source, destination in ((path, "a"), ("a", path)):
        assert isinstance(move(policy, source, destination), Denied)


def test_a_path_that_is_too_long_to_match_needs_approval() -> None:
    long = "a/" * 100_000 + "b"
    assert isinstance(move(Policy(allow=("move_file",)), long, "b"), Allowed)
    policy = Policy(mode=Mode.ALL, deny=("move_file(secret/**)",))
    assert isinstance(move(policy, "a", long), ApprovalNeeded)
    assert isinstance(move(policy, "a", long + "/.git/x"), Denied)


def test_names_that_only_resemble_a_protected_folder_are_not_protected() -> None:
    policy = Policy(allow=("move_file",))
    for path in (".gitignore", ".github/x", "a.git/x"):
        assert move(policy, path, "b") == Allowed("move_file")


def test_a_tool_that_changes_nothing_may_read_a_protected_folder() -> None:
    spec = msgspec.structs.replace(move_file.spec, risk="read")
    assert evaluate_call(Policy(), spec, {"source": HOOK, "destination": "a"}) == Allowed()


def test_every_path_of_a_list_is_checked() -> None:
    policy = Policy(allow=("copy_all(a/**)",))
    assert isinstance(evaluate_call(policy, COPY_ALL, {"paths": ["a/x", "a/y"]}), Allowed)
    assert isinstance(evaluate_call(policy, COPY_ALL, {"paths": ["a/x", "b"]}), ApprovalNeeded)
    assert isinstance(evaluate_call(policy, COPY_ALL, {"paths": ["a/x", 1]}), ApprovalNeeded)
    assert isinstance(evaluate_call(policy, COPY_ALL, {"paths": ["a/x", HOOK]}), Denied)


@pytest.mark.parametrize("paths", [None, 1, {"a/x": 1}, [["a/x"]], ["a/x", None]])
def test_a_list_that_does_not_hold_paths_needs_approval(paths: Any) -> None:
    allow = Policy(allow=("copy_all(a/**)",))
    assert isinstance(evaluate_call(allow, COPY_ALL, {"paths": paths}), ApprovalNeeded)
    deny = Policy(mode=Mode.ALL, deny=("copy_all(secret/**)",))
    assert isinstance(evaluate_call(deny, COPY_ALL, {"paths": paths}), ApprovalNeeded)


def test_a_call_without_any_path_needs_a_rule_for_the_tool() -> None:
    allow = Policy(allow=("copy_all(a/**)",))
    assert isinstance(evaluate_call(allow, COPY_ALL, {"paths": []}), ApprovalNeeded)
    assert isinstance(evaluate_call(allow, COPY_ALL, {}), ApprovalNeeded)
    assert evaluate_call(Policy(allow=("copy_all",)), COPY_ALL, {"paths": []}) == Allowed(
        "copy_all"
    )


@pytest.mark.parametrize("odd", [1, None, ["a"], {"a": "b"}, True])
@pytest.mark.parametrize("argument", ["source", "destination"])
def test_a_path_that_is_no_text_needs_approval(argument: str, odd: Any) -> None:
    call = {"source": "a", "destination": "a"} | {argument: odd}
    policy = Policy(allow=("move_file(a)",))
    assert isinstance(evaluate_call(policy, move_file.spec, call), ApprovalNeeded)
    deny = Policy(mode=Mode.ALL, deny=("move_file(secret/**)",))
    assert isinstance(evaluate_call(deny, move_file.spec, call), ApprovalNeeded)


def test_a_missing_path_is_the_workspace() -> None:
    deny = Policy(mode=Mode.ALL, deny=("move_file(.)",))
    assert isinstance(evaluate_call(deny, move_file.spec, {"source": "a"}), Denied)


def test_a_pattern_covers_the_targets_of_the_kinds_it_can_be_read_as() -> None:
    call = {"url": "https://example.com/x", "path": "out/x", "then": "wc out/x"}
    verdict = evaluate_call(Policy(), DOWNLOAD, call)
    assert isinstance(verdict, ApprovalNeeded)
    assert verdict.rules == ("download(example.com)", "download(out/x)", "download(wc out/x)")
    assert isinstance(evaluate_call(Policy(allow=verdict.rules), DOWNLOAD, call), Allowed)
    some = Policy(allow=verdict.rules[:2])
    assert isinstance(evaluate_call(some, DOWNLOAD, call), ApprovalNeeded)
    for rule in ("download(*.com)", "download(out/**)", "download(wc *)"):
        assert isinstance(evaluate_call(Policy(Mode.ALL, deny=(rule,)), DOWNLOAD, call), Denied)


def test_a_rule_that_does_not_fit_the_tool_is_safe() -> None:
    plain = ToolSpec("plain", "", {}, "write")
    with pytest.raises(RuleError, match="plain takes no pattern; write plain alone"):
        parse_rule("plain(x)", targets_by_tool([plain]))
    assert isinstance(evaluate_call(Policy(allow=("plain(x)",)), plain, {}), ApprovalNeeded)
    deny = Policy(mode=Mode.ALL, deny=("plain(x)",))
    assert isinstance(evaluate_call(deny, plain, {}), ApprovalNeeded)


def config(policy: Policy) -> RunConfig:
    given = run_config(policy=policy, people=True)
    return msgspec.structs.replace(given, tools=(*given.tools, move_file.spec))


def moving(call_id: str, source: str, destination: str) -> ToolCall:
    return ToolCall(call_id, "move_file", {"source": source, "destination": destination})


def answered(turn: Turn, **more: Any) -> Answer:
    return Answer(next_question(turn).id, "approve", "ada", "web", **more)


def test_a_turn_denies_a_move_into_or_out_of_a_protected_folder() -> None:
    turn = start_turn(config(Policy(mode=Mode.ALL, allow=("move_file",))))
    add_reply(turn, moving("c1", "a", HOOK), moving("c2", HOOK, "a"))
    assert isinstance(turn.next(), Ask)
    for result in last_results(turn).values():
        assert result.failed
        assert f"{HOOK} is protected" in result.text


def test_a_turn_offers_the_rules_for_both_paths_and_runs_the_approved_call() -> None:
    turn = start_turn(config(Policy()))
    add_reply(turn, moving("c1", "a", "b"))
    stored = msgspec.json.decode(msgspec.json.encode(turn), type=Turn)
    assert (stored.config.tools[-1], stored.question) == (move_file.spec, turn.question)
    (item,) = next_question(stored).calls
    assert item.rules == ("move_file(a)", "move_file(b)")
    stored.resolve(answered(stored, grant="session", rules=item.rules))
    assert isinstance(stored.next(), Act)
    stored.allow_rules(item.rules)
    again = start_turn(stored.config)
    add_reply(again, moving("c1", "a", "b"))
    assert isinstance(again.next(), Act)


@pytest.mark.parametrize(
    ("tool", "names"),
    [
        ("shell", {"shell"}),
        ("mcp__git-hub__create_issue", {"mcp__git-hub__create_issue", "mcp__git-hub"}),
        ("mcp__a__b__c", {"mcp__a__b__c", "mcp__a"}),
        ("mcp__a-___b", {"mcp__a-___b", "mcp__a-"}),
    ],
)
def test_a_server_stands_for_all_of_its_tools(tool: str, names: set[str]) -> None:
    assert rule_names(tool) == names


def test_a_tool_of_a_server_has_the_name_of_the_server_in_rules() -> None:
    assert mcp_server("mcp__git-hub_2__create__issue") == "git-hub_2"
    assert rule_names("mcp__github__create_issue") == {"mcp__github__create_issue", "mcp__github"}
    assert mcp_server("shell") == ""
    assert rule_names("shell") == {"shell"}

"""Rows of user messages, tool calls, plans and results."""

from typing import Any

import pytest

from internal.agent.domain.text import mark_untrusted
from internal.channels.cli.render.event_rows import (
    EventRows,
    align_columns,
    describe_arguments,
    first_line,
)
from internal.channels.cli.render.text import StyledLine, cell_width, plain_text, wrap_line
from internal.channels.cli.render.theme import ASCII, UNICODE
from internal.i18n.catalog import MessageCatalog

ROWS = EventRows(MessageCatalog("repl", "en"), UNICODE)


def completed(name: str = "shell", **more: Any) -> dict[str, Any]:
    return {"tool_name": name, "duration_ms": 1_234, "result": "one\ntwo", "metadata": {}, **more}


def text(line: StyledLine) -> str:
    return plain_text(line.body)


def test_a_message_is_indented_below_its_mark_and_has_its_remark_at_the_end() -> None:
    lines = list(ROWS.user_message("one\n\ntwo\n", "noted"))
    rows = [plain_text(row) for line in lines for row in wrap_line(line, 20)]
    assert rows == ["> one", "", "  two  noted"]


def test_a_call_shows_its_argument_time_and_number_of_lines() -> None:
    (line,) = ROWS.tool({"arguments": {"command": "ls"}}, completed(), 40)
    assert text(line).startswith("✓ shell  ls ")
    assert text(line).endswith(" 1.2s · 2 lines")
    assert cell_width(text(line)) == 40


@pytest.mark.parametrize(
    ("metadata", "summary"),
    [
        ({"exit_code": 3}, "exit 3"),
        ({"matches": 1}, "1 match"),
        ({"entries": 4}, "4 lines"),
        ({"diff": "--- a\n+++ b\n@@\n-x\n+y\n+z\n"}, "+2 -1"),
    ],
)
def test_the_summary_of_a_call(metadata: dict[str, Any], summary: str) -> None:
    line = ROWS.tool({}, completed(metadata=metadata), 60)[0]
    assert text(line).endswith(f"1.2s · {summary}")


def test_a_call_that_was_not_run_has_a_row_with_its_reason() -> None:
    metadata = {"not_run": "plan", "what": "echo hi\nmore"}
    row, why = ROWS.tool({}, completed(error="Not run.", metadata=metadata), 60)
    assert text(row) == "· not run  shell  echo hi"
    assert text(why) == "The agent had not made a plan."


def test_the_end_of_a_run_counts_the_last_calls_that_were_not_run() -> None:
    result = {"usage": {}, "duration_ms": 2_000, "calls_not_run": 2}
    line = text(ROWS.result(result, "!"))
    assert line.startswith("! completed, 2 calls were not run · 2.0s")


def test_steps_show_their_criteria_and_that_nobody_reported_them() -> None:
    step = {"description": "Look", "status": "in_progress", "success_criteria": "a\nb"}
    plan = {"goal": "g", "steps": [step], "made_by": "larkspur"}
    _, _, running = ROWS.steps(plan)
    assert text(running) == "◆ Look  done when: a; b"
    _, by, over = ROWS.steps(plan, is_over=True)
    assert text(by).startswith("  made by Larkspur")
    assert text(over) == "? Look  not reported · done when: a; b"


def test_a_command_that_ended_with_an_error_is_a_failure() -> None:
    started = {"arguments": {"command": "exit 3"}}
    (line,) = ROWS.tool(started, completed(metadata={"exit_code": 3}), 60)
    assert text(line).startswith("✕ shell  exit 3 ")
    assert [style for style, said in line.body if "✕" in said or "1.2s" in said] == [
        "class:failed",
        "class:failed",
    ]


def test_a_call_of_an_mcp_server_is_named_in_words() -> None:
    (line,) = ROWS.tool({}, completed("mcp__github__add_issue"), 60)
    assert text(line).startswith("✓ add issue (github)")


def test_a_failed_call_shows_the_first_line_of_its_error() -> None:
    (line,) = ROWS.tool({"arguments": {"path": "x"}}, completed(error="\nno file\nmore"), 60)
    assert text(line).startswith("✕ shell  no file ")
    assert text(line).endswith("1.2s")


def test_a_long_diff_is_cut_and_the_rest_counted() -> None:
    diff = "--- a\n+++ b\n" + "".join(f"+{n}\n" for n in range(30))
    _, *lines = ROWS.tool({}, completed(metadata={"diff": diff}), 60)
    assert text(lines[0]) == "+0"
    assert text(lines[-1]).strip() == "… 10 more"


def test_a_call_that_changed_trusted_files_names_them() -> None:
    done = completed(metadata={"configuration": [".git/hooks/pre-commit", "AGENTS.md"]})
    _, line = ROWS.tool({}, done, 60)
    assert text(line).startswith("Created or changed: .git/hooks/pre-commit, AGENTS.md. ")


def test_a_call_names_what_its_server_logged() -> None:
    _, line = ROWS.tool({}, completed(metadata={"logged": ["disk\x1b[1m full"]}), 60)
    assert text(line).startswith("The server logged an error: disk")
    assert "\x1b" not in text(line)


def test_a_denied_call_names_the_rule_that_would_allow_it() -> None:
    denied = {"denied": True, "what": "rm x\nls", "rules": ["shell(rm x)"]}
    lines = [text(line) for line in ROWS.tool({}, completed(metadata=denied), 60)]
    assert lines[:2] == ["! denied  rm x", "ls"]
    assert lines[2].endswith("/permissions allow shell(rm x)")


def test_a_denied_call_that_no_rule_may_allow_shows_the_reason() -> None:
    done = completed(metadata={"denied": True, "what": "rm x"}, error="Never allowed.")
    assert [text(line) for line in ROWS.tool({}, done, 60)][1:] == ["Never allowed."]


def test_a_plan_is_one_line_and_its_steps_show_their_status() -> None:
    plan = {
        "goal": "ship",
        "steps": [
            {"description": "build", "status": "completed"},
            {"description": "test", "status": "pending"},
        ],
    }
    assert text(ROWS.plan(plan)) == "▣ plan 2 steps  build → test"
    assert [text(line) for line in ROWS.steps(plan)] == ["▣ ship", "✓ build", "○ test"]


def test_a_result_adds_up_the_input_and_shows_a_cost_only_if_it_is_known() -> None:
    usage = {"input_tokens": 900, "cache_read_tokens": 200, "output_tokens": 50}
    result = {"usage": usage, "duration_ms": 72_000}
    assert text(ROWS.result(result, "✓")) == "✓ 1m12s · 1.1k in 50 out"
    assert text(ROWS.result({**result, "cost": 0.005}, "✓")).endswith(" out · $0.0050")


def test_errors_and_notes_are_one_line_of_the_given_glyphs() -> None:
    ascii_rows = EventRows(MessageCatalog("repl", "en"), ASCII)
    assert text(ascii_rows.failed("a\nb")) == "x a b"
    assert text(ascii_rows.note("a\x1b[0m")) == r"- a\u001b[0m"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"limit": 3, "path": "a", "command": "ls"}, "ls"),
        ({"pattern": "x y"}, '"x y"'),
        ({"command": " ", "other": "value"}, "value"),
        ({"limit": 3}, ""),
    ],
)
def test_the_argument_that_describes_a_call(arguments: dict[str, Any], expected: str) -> None:
    assert describe_arguments(arguments) == expected


def test_the_first_line_that_is_not_blank() -> None:
    assert (first_line("\n \na\nb"), first_line(" \n")) == ("a", "")


def test_columns_are_aligned_by_their_width_on_the_screen() -> None:
    lines = [text(line) for line in align_columns([("模型", "a"), ("x", "b")])]
    assert lines == ["模型  a", "x     b"]


def test_people_do_not_read_words_for_models_in_rows() -> None:
    error = mark_untrusted("mcp__tested__fail", "no such table")
    done = {"tool_name": "mcp__tested__fail", "duration_ms": 1, "error": error, "metadata": {}}
    started = {"arguments": {}, "title": "Query (tested)"}
    shown = text(ROWS.tool(started, done, 100)[0])
    assert "no such table" in shown
    assert "Query (tested)" in shown
    assert "not a request" not in shown


def test_a_command_of_a_person_is_a_row() -> None:
    ran = {"command": "ls", "output": "a\nb", "exit_code": 2}
    assert text(ROWS.own_command(ran)) == "! ls  2 lines · exit 2"

"""Questions above the prompt: windows of any size, and the effects of keys."""

from typing import Any

import pytest

from internal.agent.domain.plans import read_steps
from internal.channels.cli.open_question import ENTER, OpenQuestion
from internal.channels.cli.render.question_panel import QuestionPanel
from internal.channels.cli.render.text import cell_width, plain_text
from internal.channels.cli.render.theme import ASCII, UNICODE
from internal.i18n.catalog import MessageCatalog


def view(kind: str, **more: Any) -> dict[str, Any]:
    return {"question_id": "question-1", "run_id": "run-1", "kind": kind, "title": "Well?", **more}


def call(name: str, **more: Any) -> dict[str, Any]:
    return {
        "call_id": name,
        "tool": "shell",
        "what": f"echo {name}",
        "risk": "exec",
        "reason": "It runs something.",
        "rules": [f"shell(echo {name})"],
        **more,
    }


CHANGE = "--- a/x\n+++ b/x\n" + "".join(f"+行 {n} \u202eevil\n" for n in range(100))
EVERY = {
    "command": view("approval", calls=[call("one", what="printf 'שלום 世界 👩‍👩‍👧'\n" * 30)]),
    "change": view("approval", calls=[call("one", tool="edit", what='edit {"a"', diff=CHANGE)]),
    "calls": view("approval", calls=[call(f"c{n}", diff=CHANGE[:800]) for n in range(12)]),
    "plan": view("plan", plan={"goal": "目标 " * 60, "steps": [{"description": "走 " * 90}] * 20}),
    "words": view("clarify", body="why\n" * 80, options=["红 " * 40] * 30, multiple=True),
    "recovery": view("recovery", title="它坏了 " * 60, body="why\n" * 80),
}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_the_panel_fits_every_window_or_is_not_shown(name: str, glyphs: Any) -> None:
    question = OpenQuestion(EVERY[name])
    for language in ("en", "zh"):
        panel = QuestionPanel(MessageCatalog("repl", language), glyphs)
        for width in (3, 20, 80):
            for max_rows in (0, 1, 2, 3, 5, 9, 30):
                rows = panel.rows(question, width, max_rows, armed=True)
                assert len(rows) <= max_rows
                assert all(cell_width(plain_text(row)) <= max(width, 2) for row in rows)
                assert "\u202e" not in "".join(map(plain_text, rows))


@pytest.mark.parametrize("name", EVERY)
def test_omitted_rows_are_counted(name: str) -> None:
    question, panel = (
        OpenQuestion(EVERY[name]),
        QuestionPanel(MessageCatalog("repl", "en"), UNICODE),
    )
    shown = panel.rows(question, 80, 12, armed=True)
    (more,) = [plain_text(row) for row in shown if "Ctrl+O shows all" in plain_text(row)]
    keys = len(panel.rows(question, 80, 12, armed=True)) - shown.index(
        next(row for row in shown if "Ctrl+O" in plain_text(row))
    )
    whole = panel.rows(question, 80, 10_000, armed=True)
    assert 1 <= keys <= 3
    assert int(more.split()[1]) > 0
    assert len(whole) >= len(shown)


def test_keys_are_shown_only_when_they_are_active() -> None:
    question, panel = (
        OpenQuestion(EVERY["command"]),
        QuestionPanel(MessageCatalog("repl", "en"), UNICODE),
    )
    early, late = (panel.rows(question, 80, 20, armed=armed) for armed in (False, True))
    assert len(early) == len(late)
    assert "[y]" not in "".join(map(plain_text, early))
    assert "[y] once" in "".join(map(plain_text, late))


def test_key_labels_are_not_split_where_the_width_allows() -> None:
    question = OpenQuestion(EVERY["command"])
    for language in ("en", "zh"):
        panel = QuestionPanel(MessageCatalog("repl", language), UNICODE)
        rows = [plain_text(row) for row in panel.rows(question, 40, 20, armed=True)]
        keys = rows[next(n for n, row in enumerate(rows) if "[y]" in row) :]
        assert 2 <= len(keys) <= 3
        assert all(row.startswith("  [") and not row.endswith("]") for row in keys)


def test_a_call_that_no_rule_may_allow_offers_no_lasting_approval() -> None:
    question = OpenQuestion(view("approval", calls=[call("one"), call("two", rules=[])]))
    assert question.keys == ("y", "n", "e", "1", "2")
    assert "[a]" not in "".join(
        map(
            plain_text,
            QuestionPanel(MessageCatalog("repl", "en"), UNICODE).rows(question, 80, 20, armed=True),
        )
    )


def test_marks_become_a_decision_for_each_call() -> None:
    question = OpenQuestion(view("approval", calls=[call("one"), call("two")]))
    assert question.press(ENTER) is None
    assert (question.press("1"), question.press("2"), question.press("1")) == (None, None, None)
    answer = question.press(ENTER)
    assert answer == {"decision": "approve", "items": {"one": False, "two": True}}


def test_unchanged_steps_approve_the_plan_and_changed_ones_edit_it() -> None:
    plan = {"goal": "g", "steps": [{"description": "first\n  line"}, {"description": "second"}]}
    question = OpenQuestion(view("plan", plan=plan))
    box = question.press("e")
    assert box == "1. first line\n2. second"
    assert question.keys == ()
    assert question.answer_from(str(box), read_steps) == {"decision": "approve"}
    edited = question.answer_from("- second\n\n3) third", read_steps)
    assert edited == {"decision": "edit", "edit": {"steps": ["second", "third"]}}


def test_rules_of_all_calls_are_offered_once_each() -> None:
    question = OpenQuestion(view("approval", calls=[call("one"), call("one"), call("two")]))
    box = question.press("p")
    assert box == "shell(echo one)\nshell(echo two)"
    answer = question.answer_from("shell(echo *)\n\n", read_steps)
    assert answer == {"decision": "approve", "grant": "rule", "rules": ["shell(echo *)"]}


def test_only_a_key_that_decides_may_turn_out_to_begin_a_word() -> None:
    calls, plan = OpenQuestion(EVERY["calls"]), OpenQuestion(EVERY["plan"])
    assert [key for key in calls.keys if not calls.is_final_key(key)] == ["p", "e", *"123456789"]
    assert all(plan.is_final_key(key) for key in plan.keys)

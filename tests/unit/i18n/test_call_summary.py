"""Short texts about tool calls, in both languages."""

from typing import get_args

import pytest

from internal.agent.domain.permissions.matchers import ReasonCode
from internal.i18n.call_summary import (
    describe_reason,
    describe_rules,
    describe_rules_briefly,
    summarize_calls,
)
from internal.i18n.catalog import MessageCatalog
from internal.i18n.language import Language

COUNTS = [("run", 2), ("change", 1), ("use", 1)]


@pytest.mark.parametrize("catalog", ["chat", "repl"])
@pytest.mark.parametrize(
    ("language", "counts", "title"),
    [
        ("en", [("run", 3)], "Run 3 commands?"),
        ("en", COUNTS, "Run 2 commands, change 1 file and use 1 other tool?"),
        ("zh", COUNTS, "运行 2 条命令、修改 1 个文件、使用 1 个其他工具\uff1f"),
    ],
)
def test_several_calls_are_counted_by_what_they_do(
    catalog: str, language: Language, counts: list[tuple[str, int]], title: str
) -> None:
    assert summarize_calls(MessageCatalog(catalog, language), counts) == title


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (["shell(npm test *)"], "npm test …"),
        (["write_file(docs/**)", "write_file(docs/**)"], "docs/**"),
        (["shell(ls)", "shell(echo (a))"], "ls, echo (a)"),
        (["mail"], "mail"),
    ],
)
def test_rules_are_described_by_their_patterns(rules: list[str], words: str) -> None:
    assert describe_rules(rules) == words


def test_a_long_rule_is_left_out_of_a_button() -> None:
    assert describe_rules_briefly([f"shell({'x' * 41})"]) == "…"


@pytest.mark.parametrize("catalog", ["chat", "repl"])
@pytest.mark.parametrize("code", sorted({*get_args(ReasonCode)} - {""}))
def test_every_reason_has_a_translation(catalog: str, code: str) -> None:
    shown = describe_reason(MessageCatalog(catalog, "zh"), code, "x", "in English")
    assert "x" in shown
    assert shown != "in English"


def test_a_question_without_a_known_code_keeps_its_sentence() -> None:
    for code in ("", "of a later version"):
        assert describe_reason(MessageCatalog("chat", "zh"), code, "x", "Why.") == "Why."

"""Requests that the offline demo model understands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.llm.offline.jobs import (
    Job,
    answer_job,
    detect_language,
    load_catalog,
    parse_jobs,
    tool_jobs,
)
from tests import ROOT


@given(st.text(max_size=300))
def test_any_text_can_be_parsed(text: str) -> None:
    assert isinstance(parse_jobs(text), list)


def test_the_documentation_lists_every_example() -> None:
    page = (ROOT / "docs/models.md").read_text(encoding="utf-8")
    assert [example for example in load_catalog().examples if example not in page] == []


def test_both_languages_have_the_same_phrases() -> None:
    phrases = load_catalog().phrases
    assert phrases["en"].keys() == phrases["zh"].keys()


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("list the files", ["list"]),
        ("read a.md", ["read"]),
        ("read a.md and then list the files", ["read", "list"]),
        ("read a.md and then sing", []),
        ("sing", []),
        ("", []),
    ],
)
def test_a_request_with_an_unknown_part_has_no_jobs(text: str, kinds: list[str]) -> None:
    assert [job.kind for job in parse_jobs(text)] == kinds


def test_a_plan_is_listing_writing_and_reading() -> None:
    jobs = tool_jobs(Job("plan", {"topic": "herons"}), "en")
    assert [job.tool for job in jobs] == ["list_dir", "write_file", "read_file"]
    assert jobs[1].arguments["path"] == jobs[2].arguments["path"]
    assert "herons" in jobs[1].arguments["content"]


def test_small_talk_takes_no_tool() -> None:
    assert tool_jobs(Job("help", {}), "en") == []


def test_the_language_follows_the_characters() -> None:
    assert [detect_language(text) for text in ("hello", "你好", "say 你好", "")] == [
        *("en", "zh", "zh", "en")
    ]


def test_a_sum_without_a_value_is_answered_with_a_sentence() -> None:
    assert "42" in answer_job(Job("sum", {"sum": "6 * 7"}), "en")
    assert answer_job(Job("sum", {"sum": "1/0"}), "en").strip()

"""Requests that the offline demo model understands."""
# ruff: noqa: RUF001 - as people type it

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.llm.offline.catalog import Job, detect_language, load_catalog
from internal.llm.offline.jobs import answer_job, find_unknown_part, parse_jobs, tool_jobs
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
        ("Hi! Can you list the files here, please?", ["list"]),
        ("hello, what is 6*7?", ["sum"]),
        ("good morning", ["greet"]),
        ("Thank you!", ["thanks"]),
        ("2+2", ["sum"]),
        ("2026-11-23", []),
        ("write a haiku about lark to a.md and count the words in a.md", ["poem", "count"]),
        ("write a haiku about bread and butter to a.md", ["poem"]),
        ('write "read a.md and then sing" to b.md', ["write"]),
        ("write hello to a.txt and bye to b.txt", []),
        ("run touch a.txt and send it to Bob", []),
        ("你好，请帮我列出文件，再统计 a.md 的字数，谢谢", ["list", "count"]),
        ("把 a 写到 b.txt，把 c 写到 d.txt", ["write", "write"]),
        ("列出文件并唱歌", []),
        ("sing", []),
        ("", []),
    ],
)
def test_a_request_with_an_unknown_part_has_no_jobs(text: str, kinds: list[str]) -> None:
    assert [job.kind for job in parse_jobs(text)] == kinds


FREE = ("greet", "thanks")
KNOWN = {
    language: [text for text in load_catalog().examples if detect_language(text) == language]
    for language in ("en", "zh")
}
SEPARATORS = {
    "en": (" and ", ", then ", " and then ", ". ", ", and ", "; ", "! Please ", "\n"),
    "zh": ("，", "。", "，然后", "，再", "，并", "；请帮我", "\n"),
}
OPENINGS = {"en": ("", "Hi! ", "please ", "Could you "), "zh": ("", "你好，", "请帮我", "麻烦你")}
UNKNOWN = {
    "en": ("sing a song", "send it to Bob", "translate it into French"),
    "zh": ("唱一首歌", "发给小王", "翻译成法语"),
}


@settings(deadline=None)
@given(st.data(), st.sampled_from(["en", "zh"]))
def test_a_request_of_several_parts_is_the_jobs_of_its_parts(
    data: st.DataObject, language: str
) -> None:
    parts = data.draw(st.lists(st.sampled_from(KNOWN[language]), min_size=1, max_size=4))
    text = data.draw(st.sampled_from(OPENINGS[language])) + parts[0].strip("?？")
    for part in parts[1:]:
        text += data.draw(st.sampled_from(SEPARATORS[language])) + part.strip("?？")
    jobs = [job for part in parts for job in parse_jobs(part)]
    assert parse_jobs(text) == ([job for job in jobs if job.kind not in FREE] or jobs[:1])

    unknown = data.draw(st.sampled_from(UNKNOWN[language]))
    separator = data.draw(st.sampled_from(SEPARATORS[language]))
    assert parse_jobs(text + separator + unknown) == []
    assert find_unknown_part(text + separator + unknown).endswith(unknown)


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

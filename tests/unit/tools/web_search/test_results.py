"""Cleaning of hostile search results."""

import time

import pytest

from internal.search_providers.provider import SearchQuery, SearchResult
from internal.tools.web_search.results import (
    MAX_SNIPPET_CHARS,
    MAX_TITLE_CHARS,
    MAX_URL_CHARS,
    clean,
    clean_text,
)

QUERY = SearchQuery("a", 5)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("How to <strong>await</strong> it", "How to await it"),
        ("Tom &amp; Jerry&#x27;s &lt;div&gt;", "Tom & Jerry's <div>"),
        ("<script>alert(1)</script><img src=x onerror=y>", "alert(1)"),
        ("a<!-- hidden -->b<br/>c", "a b c"),
        ("vector<int> and List<String> stay", "vector<int> and List<String> stay"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07text \x1b]8;;http://evil\x1b\\", "red text"),
        ("&#27;[2Jcleared \x9b1mx", "[2Jcleared x"),
        ("北京<em>天气</em>预报", "北京天气预报"),
        ("safe\u202egpj.exe\u2066\u200b\ufeff", "safegpj.exe"),
        ("tags\U000e0041\U000e0042 and \u3164 filler", "tags and filler"),
        ("two\nlines\r\n\u2028and\u3000more\x00", "two lines and more"),
        ("\ud800", ""),
        ("你好 世界", "你好 世界"),
    ],
)
def test_text_is_one_visible_line(text: str, cleaned: str) -> None:
    assert clean_text(text, 100) == cleaned


@pytest.mark.parametrize(
    "url",
    [
        *("javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "//host/x", "", "x"),
        *("https://user:pass@host.example/", "https://host.example/\u202e a", "http://[bad"),
        *("https://0x7f.1/", f"https://host.example/{'a' * MAX_URL_CHARS}"),
    ],
)
def test_results_that_cannot_be_fetched_are_left_out(url: str) -> None:
    good = SearchResult("good", "https://host.example/")
    assert [each.title for each in clean(QUERY, [SearchResult("bad", url), good])] == ["good"]


def test_urls_are_ascii_and_each_is_there_once() -> None:
    urls = [
        "https://host.example/路?q=值",
        "https://HOST.example/路?q=值",
        "http://host.example:80",
    ]
    results = clean(QUERY, [SearchResult("", url) for url in urls])
    assert [(each.title, each.source, each.url) for each in results] == [
        ("host.example", "host.example", "https://host.example/%E8%B7%AF?q=%E5%80%BC"),
        ("host.example", "host.example", "http://host.example/"),
    ]


def test_results_are_bounded_in_number_and_size() -> None:
    long = "word " * 10_000
    results = [SearchResult(long, f"https://host.example/{n}", long) for n in range(50)]
    cleaned = clean(QUERY, results)
    assert len(cleaned) == 5
    assert len(cleaned[0].title) == MAX_TITLE_CHARS
    assert len(cleaned[0].snippet) == MAX_SNIPPET_CHARS


def test_only_the_domain_and_what_is_below_it_remains() -> None:
    hosts = ["a.example", "www.a.example", "evil-a.example", "a.example.evil", "b.example"]
    results = [SearchResult(host, f"https://{host}/") for host in hosts]
    cleaned = clean(SearchQuery("a", 5, domain="a.example"), results)
    assert [each.title for each in cleaned] == ["a.example", "www.a.example"]


@pytest.mark.parametrize(
    ("text", "date"),
    [
        *(("2026-11-03", "2026-11-03"), ("2026-11-03T23:30:00Z", "2026-11-03")),
        *(("2026-11-03T02:00:00+08:00", "2026-11-02"), ("2026-11-03T00:00:00.000Z", "2026-11-03")),
        *(("Tue, 03 Nov 2026 08:00:00 GMT", "2026-11-03"), ("3 weeks ago", ""), ("", "")),
        *(("0001-01-01T00:00:00+14:00", ""), ("2026-99-99", ""), ("<b>2026-11-03</b>", "")),
    ],
)
def test_dates_are_days(text: str, date: str) -> None:
    (result,) = clean(QUERY, [SearchResult("a", "https://host.example/", date=text)])
    assert result.date == date


@pytest.mark.parametrize("piece", ["<!--", "<a ", "\x1b[0", "\x1b]", "&#", "<a <", "\x9b;"])
def test_repeated_openings_take_no_time(piece: str) -> None:
    started = time.process_time()
    clean_text(piece * 200_000, 100)
    assert time.process_time() - started < 0.5

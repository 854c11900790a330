"""HTML to Markdown."""

import codecs
import io
import re
import time
from collections.abc import Callable

import pytest

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.html_to_markdown import MAX_FILE_BYTES, convert, convert_page, read_html
from tests.support.web_pages import PAGES

Converter = Callable[[bytes, str | None], str]


def test_invisible_elements_are_dropped() -> None:
    assert convert(b"<title>T</title><h1>T</h1><p>a<svg>b</svg><template>c", None) == "# T\n\na"
    assert convert("<p>你好".encode("gb18030"), "gb18030") == "你好"


@pytest.mark.parametrize("depth", [1, 3_000])
@pytest.mark.parametrize(
    "converter", [convert, lambda page, charset: convert_page(page, charset).text]
)
def test_pages_of_any_nesting_depth_are_converted(converter: Converter, depth: int) -> None:
    page = b"<script>x</script>" + b"<div>" * depth + "<b>ü</b>".encode()
    assert converter(page, "utf-8").strip("*\n") == "ü"


def test_a_deeply_nested_page_has_no_menu_either() -> None:
    page = b"<nav>Menu</nav><title>T</title>" + b"<div>" * 3_000 + b"<p>one<p>two words"
    assert convert_page(page, None).text == "# T\n\none\ntwo words"


def test_a_file_is_read_in_its_encoding_unless_it_is_too_large() -> None:
    content = "<p>你好".encode("gb18030")
    assert list(read_html(io.BytesIO(content), "gb18030").pieces) == ["你好"]
    with pytest.raises(DocumentUnreadable, match="larger than 3 MB: read its source"):
        read_html(io.BytesIO(content + b" " * MAX_FILE_BYTES), "gb18030")


@pytest.mark.parametrize("kind", PAGES)
def test_the_main_content_of_a_page_remains_and_its_frame_does_not(kind: str) -> None:
    page = PAGES[kind]
    text = convert_page(page.html.encode(), "utf-8").text
    assert [each for each in page.wanted if each not in text] == []
    assert [each for each in page.noise if each in text] == []


@pytest.mark.parametrize("kind", ["article", "api", "chinese", "issues"])
def test_a_file_is_converted_whole(kind: str) -> None:
    page = PAGES[kind]
    text = convert(page.html.encode(), "utf-8")
    assert [each for each in page.wanted if each not in text] == []
    assert any(each in text for each in page.noise)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        # the form of an ASP.NET page is around everything
        ("<form><nav>Menu</nav><h1>Title</h1><p>Long text.</p></form>", "# Title\n\nLong text."),
        ("<body style='display:none'><p>Long text.</p><footer>f</footer></body>", "Long text."),
        # a main element that a script would fill
        ("<main id=app></main><p>Text.</p>", "Text."),
        ("<main><p>One</p></main><main><p>Two</p></main>", "One"),
        ("<article>One</article><article>Two</article><nav>Menu</nav>", "One\n\nTwo"),
        ("<nav><a href='/a'>Only a menu</a></nav>", "[Only a menu](/a)"),
        ("<header>Site<h1>Only a header</h1></header>", "Site\n\n# Only a header"),
        ("<p>Long enough.<i hidden>h</i><i aria-hidden=true>#</i></p>", "Long enough."),
        ("<p>Long enough.<b style='DISPLAY: none'>n</b></p>", "Long enough."),
        ("<div role=main><header><h1>H</h1></header><p>Text.</p></div>", "# H\n\nText."),
        ("<header>Site</header><p>Long enough.</p>", "Long enough."),
        ("<nav>A menu that is longer than the text</nav><p>Text.</p>", "Text."),
        ("<form><main><form>Subscribe</form><p>Long enough.</p></main></form>", "Long enough."),
        (
            "<aside><aside>inner</aside>outer</aside><p>The long text remains.</p>",
            "The long text remains.",
        ),
        ("", ""),
        ("<!-- only a comment -->", ""),
    ],
)
def test_a_page_without_marked_main_content(page: str, text: str) -> None:
    assert convert_page(page.encode(), "utf-8").text == text


@pytest.mark.parametrize("tag", ["<i hidden>", "<header>", "<aside>", "<article><header>"])
@pytest.mark.first_rows(1)
def test_nested_frames_take_linear_time(tag: str) -> None:
    started = time.process_time()
    convert_page(f"{tag}x".encode() * 10_000, "utf-8")
    assert time.process_time() - started < 5


def test_links_of_a_page_are_absolute() -> None:
    page = (
        "<a href='/a#b'>1</a> <a href=' two.html '>2</a> <a href='#here'>3</a>"
        " <a href='mailto:me@site.test'>4</a> <a href='//other.test/?q=1'>5</a>"
        " <a href='a b'>6</a> <a href='http://[x'>7</a> <a href='https://other.test/x'>8</a>"
    )
    found = convert_page(page.encode(), "utf-8", "http://site.test/dir/page").text
    assert re.findall(r"\]\((.*?)\)", found) == [
        "http://site.test/a#b",
        "http://site.test/dir/two.html",
        "#here",
        "mailto:me@site.test",
        "http://other.test/?q=1",
        "http://site.test/dir/a%20b",
        "http://[x",
        "https://other.test/x",
    ]
    based = b"<base href='/other/'><a href='x'>1</a>"
    assert "(http://site.test/other/x)" in convert_page(based, None, "http://site.test/d/p").text
    assert convert_page(b"<nav><a href='x'>1</a></nav>", None, "http://site.test/").text == (
        "[1](http://site.test/x)"
    )


@pytest.mark.parametrize(
    ("html", "charset", "text"),
    [
        ("<meta charset=gb2312><p>镕".encode("gb18030"), None, "镕"),
        (
            b"<meta http-equiv=content-type content='text/html; charset=shift_jis'><p>"
            + "①".encode("cp932"),
            None,
            "①",
        ),
        ("<p>한똠".encode("cp949"), "cp949", "한똠"),
        (b"<meta charset=iso-8859-1><p>\x93q\x94", None, "“q”"),
        (b"<!-- <meta charset=big5> --><meta charset=windows-1251><p>\xcf", None, "П"),
        ("<meta charset=utf-16><p>é".encode(), None, "é"),
        (codecs.BOM_UTF8 + "<meta charset=big5><p>é".encode(), "iso-8859-1", "é"),
        ("<p>é".encode("utf-16"), None, "é"),
        # the last character arrived by half
        ("<p>Grüße, 世界".encode()[:-1], None, "Grüße, 世\ufffd"),
    ],
)
def test_a_page_is_read_in_the_encoding_that_it_declares(
    html: bytes, charset: str | None, text: str
) -> None:
    assert convert_page(html, charset).text == text


def test_what_a_page_says_about_text_elsewhere_is_returned() -> None:
    page = convert_page(
        b"<title>Shop</title><div id=root></div><noscript>Enable\n JavaScript.</noscript>"
        b"<script src=a.js></script><script type='application/ld+json'>{}</script>",
        None,
    )
    assert (page.text, page.has_text) == ("# Shop\n\n", False)
    assert (page.scripts, page.without_scripts) == (1, "Enable JavaScript.")
    frames = b"<frameset><frame src=menu.html><frame src='/main'></frameset>"
    assert convert_page(frames, None, "http://site.test/a/").frames == (
        "http://site.test/a/menu.html",
        "http://site.test/main",
    )
    leads = b"<META HTTP-EQUIV=Refresh CONTENT=\"3;URL='next?a=1'\">"
    page = convert_page(leads, None, "http://site.test/a/b")
    assert (page.refresh, page.refresh_seconds) == ("http://site.test/a/next?a=1", 3)
    for_some = b"<noscript><meta http-equiv=refresh content='0;url=/off'></noscript>"
    assert convert_page(for_some, None, "http://site.test/").refresh == "http://site.test/off"
    assert convert_page(for_some + b"<p>Text.", None, "http://site.test/").refresh == ""

"""HTML to Markdown."""

import io
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
@pytest.mark.parametrize("converter", [convert, convert_page])
def test_pages_of_any_nesting_depth_are_converted(converter: Converter, depth: int) -> None:
    page = b"<script>x</script>" + b"<div>" * depth + "<b>ü</b>".encode()
    assert converter(page, "utf-8").strip("*\n") == "ü"


def test_a_deeply_nested_page_has_no_menu_either() -> None:
    page = b"<nav>Menu</nav><title>T</title>" + b"<div>" * 3_000 + b"<p>one<p>two words"
    assert convert_page(page, None) == "# T\n\none\ntwo words"


def test_a_file_is_read_in_its_encoding_unless_it_is_too_large() -> None:
    content = "<p>你好".encode("gb18030")
    assert list(read_html(io.BytesIO(content), "gb18030").pieces) == ["你好"]
    with pytest.raises(DocumentUnreadable, match="larger than 3 MB: read its source"):
        read_html(io.BytesIO(content + b" " * MAX_FILE_BYTES), "gb18030")


@pytest.mark.parametrize("kind", PAGES)
def test_the_main_content_of_a_page_remains_and_its_frame_does_not(kind: str) -> None:
    page = PAGES[kind]
    text = convert_page(page.html.encode(), "utf-8")
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
    assert convert_page(page.encode(), "utf-8") == text


@pytest.mark.parametrize("tag", ["<i hidden>", "<header>", "<aside>", "<article><header>"])
@pytest.mark.first_rows(1)
def test_nested_frames_take_linear_time(tag: str) -> None:
    started = time.process_time()
    convert_page(f"{tag}x".encode() * 10_000, "utf-8")
    assert time.process_time() - started < 5

"""A program of its own: HTML on standard input, Markdown on standard output.

It runs as a child process because a hostile page can keep a parser busy for minutes, and neither
a thread nor its hold on the interpreter can be taken away: a process can be ended.
"""

import resource
import sys

import bs4
import markdownify

MEMORY_BYTES = 1 << 30
_SILENT = (
    *("canvas", "head", "iframe", "noscript", "object", "script", "style", "svg", "template"),
    "title",  # it stands at the top already
)


def to_markdown(html: bytes, charset: str | None) -> str:
    """Return what a person would read: no scripts, styles or pictures; the title as a heading.

    Raises:
        RecursionError: it is nested too deeply.
    """
    soup = bs4.BeautifulSoup(html, "html.parser", from_encoding=charset)
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    for element in soup(_SILENT):
        element.decompose()
    converter = markdownify.MarkdownConverter(heading_style="ATX", strip=["img"])
    text = "\n".join(line.rstrip() for line in converter.convert_soup(soup).splitlines())
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    text = text.strip()
    return f"# {title}\n\n{text}" if title and not text.startswith(f"# {title}") else text


def to_plain_text(html: bytes, charset: str | None) -> str:
    """Return the bare text: for pages that are too deeply nested to be converted."""
    soup = bs4.BeautifulSoup(html, "html.parser", from_encoding=charset)
    return "\n".join(text.strip() for text in soup.find_all(string=True) if text.strip())


def main() -> None:
    """Convert standard input; the first argument is its encoding, empty when it is not known."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    html, charset = sys.stdin.buffer.read(), sys.argv[1] or None
    try:
        text = to_markdown(html, charset)
    except RecursionError:
        text = to_plain_text(html, charset)
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()

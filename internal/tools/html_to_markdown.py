"""Program that converts HTML on standard input to Markdown on standard output.

It runs as a child process: a hostile page can keep a parser busy for minutes, and only a process
can be stopped.
"""

import resource
import sys

import bs4
import markdownify

MEMORY_BYTES = 1 << 30
_DROPPED_ELEMENTS = (
    *("canvas", "head", "iframe", "noscript", "object", "script", "style", "svg", "template"),
    "title",  # already the heading
)


def to_markdown(html: bytes, charset: str | None) -> str:
    """Return the visible text as Markdown, without images and with the title as a heading.

    Raises:
        RecursionError: the document is nested too deeply.
    """
    soup = bs4.BeautifulSoup(html, "html.parser", from_encoding=charset)
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    for element in soup(_DROPPED_ELEMENTS):
        element.decompose()
    converter = markdownify.MarkdownConverter(heading_style="ATX", strip=["img"])
    text = "\n".join(line.rstrip() for line in converter.convert_soup(soup).splitlines())
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    text = text.strip()
    return f"# {title}\n\n{text}" if title and not text.startswith(f"# {title}") else text


def to_plain_text(html: bytes, charset: str | None) -> str:
    """Return the text alone, for documents that are nested too deeply to convert."""
    soup = bs4.BeautifulSoup(html, "html.parser", from_encoding=charset)
    return "\n".join(text.strip() for text in soup.find_all(string=True) if text.strip())


def main() -> None:
    """Convert standard input; the first argument is its encoding, "" if unknown."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    html, charset = sys.stdin.buffer.read(), sys.argv[1] or None
    try:
        text = to_markdown(html, charset)
    except RecursionError:
        text = to_plain_text(html, charset)
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()

"""Reading of documents and pictures."""

from typing import Literal, Protocol

import msgspec

from internal.text_encodings.detection import TextEncoding

FileForm = Literal["text", "picture", "document", "binary"]
"""Form of a file for a model: its characters, a picture, its extracted text, or none."""

MAX_DOCUMENT_CHARACTERS = 30_000
"""Maximum number of characters of a document returned at a time."""


class DocumentText(msgspec.Struct, frozen=True):
    """A part of the text of a document.

    Attributes:
        text: the characters from the offset on.
        kind: such as "pdf", "docx" or "text".
        parts: the number of pages, slides, sheets, chapters or entries; 1 if there are none.
        next_offset: where the following text begins, None at the end of the document.
        total: the number of characters of the whole text, None if counting them took too long.
        encoding: the encoding of the file, None if its bytes are not text.
    """

    text: str
    kind: str
    parts: int = 1
    next_offset: int | None = None
    total: int | None = None
    encoding: TextEncoding | None = None


class Picture(msgspec.Struct, frozen=True):
    """A picture that model providers accept.

    `content` is None if the file itself can be sent unchanged. Otherwise it is the picture upright,
    scaled or converted, and the other fields describe it. `pages` is the number of pages of the PDF
    that it is from, 1 for other pictures.
    """

    media_type: str
    width: int
    height: int
    content: bytes | None = None
    pages: int = 1


class WebPage(msgspec.Struct, frozen=True):
    """A web page as Markdown, with its references to text that is elsewhere.

    Attributes:
        text: the main content below the title.
        has_text: False if there is nothing but the title.
        refresh: the address that the page leads on to, "" if it leads nowhere.
        refresh_seconds: the time for which it is shown before.
        scripts: the number of programs in it, which are not run.
        without_scripts: its text for readers who run none.
        frames: addresses of pages that it shows as parts of itself.
    """

    text: str = ""
    has_text: bool = True
    refresh: str = ""
    refresh_seconds: int = 0
    scripts: int = 0
    without_scripts: str = ""
    frames: tuple[str, ...] = ()


class DocumentReader(Protocol):
    """Reads hostile files in child processes with limits of time, memory and rights.

    A file is given as the descriptor of an open regular file, which stays open. Its position is at
    the beginning afterwards, and nothing else may use it meanwhile. Cancelling a call leaves no
    process behind.
    """

    def form(self, descriptor: int, name: str, /) -> FileForm:
        """Return the form of a file, by its first bytes, then by its name. Starts no process.

        Raises:
            OSError: it cannot be read.
        """
        ...

    async def read(
        self,
        descriptor: int,
        name: str,
        *,
        offset: int = 0,
        max_characters: int = MAX_DOCUMENT_CHARACTERS,
    ) -> DocumentText:
        """Return the text from character `offset` on. Also reads plain text, but no pictures.

        Raises:
            DocumentUnreadable: the file has no text that can be read; the message has the reason.
        """
        ...

    async def read_picture(self, descriptor: int, /, page: int = 1) -> Picture:
        """Return the size of a picture, and its bytes if providers do not accept the file itself.

        Of a PDF a page is returned, such as of a scanned one; pages are counted from 1.

        Raises:
            DocumentUnreadable: it is not a picture, or cannot be read; the message has the reason.
        """
        ...

    async def convert_html(self, html: bytes, charset: str, address: str, /) -> WebPage:
        """Return the main content of a web page as Markdown, with absolute links.

        The charset is "" if the server declares none.

        Raises:
            DocumentUnreadable: it cannot be converted; the message has the reason.
        """
        ...

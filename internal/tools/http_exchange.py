"""One HTTP/1.1 request on a connection that is already open, and its answer, bounded in size.

llhttp (through httptools) reads the protocol; nothing here decides where a connection goes.
"""

import asyncio
import codecs
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import httptools

from internal.agent.domain.errors import ToolError
from internal.tools.http_urls import PublicUrl

_HEAD_LIMIT = 65_536
_CHUNK = 65_536
_INFORMATIONAL = 200
_ODD_CODECS = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "utf-7"}
)
_REQUEST = (
    "GET {target} HTTP/1.1\r\n"
    "Host: {authority}\r\n"
    "User-Agent: Mozilla/5.0 (compatible; Larkspur)\r\n"
    "Accept: text/html, text/markdown, text/*;q=0.9, application/json;q=0.9, */*;q=0.1\r\n"
    "Accept-Encoding: gzip\r\n"
    "Connection: close\r\n\r\n"
)


@dataclass(slots=True)
class HttpResponse:
    """A response. `cut`: it is larger than allowed, or ended early; `body` is its beginning."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: bool = False

    @property
    def media_type(self) -> str:
        """The media type, lower case, without parameters; empty when the server says none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str | None:
        """The declared text encoding, None when there is none that this program knows."""
        for part in self.headers.get("content-type", "").split(";")[1:]:
            key, _, value = part.partition("=")
            if key.strip().lower() == "charset":
                return _known_codec(value.strip().strip("'\""))
        return None


def _known_codec(name: str) -> str | None:
    try:
        found = codecs.lookup(name).name
        "".encode(found)  # refuses those that do not encode text
    except (LookupError, ValueError):
        return None
    return None if found in _ODD_CODECS else found


class _Reader:
    """What llhttp calls back. Holds the answer, unpacked and never larger than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.answer = HttpResponse()
        self.complete = False
        self.started = False
        self.status: Callable[[], int] = lambda: 0
        self._limit = limit
        self._body = bytearray()
        self._unpack: zlib._Decompress | None = None

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; of several with one name the last."""
        self.answer.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Get ready for the body.

        Raises:
            ToolError: it is packed in a way that was not offered.
        """
        self.answer.status = self.status()
        if self.answer.status < _INFORMATIONAL:
            return
        self.started = True
        packing = self.answer.headers.get("content-encoding", "identity").strip().lower()
        if packing in {"gzip", "x-gzip"}:
            self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
        elif packing not in {"identity", ""}:
            raise ToolError(f"the server answered in an encoding that was not asked for: {packing}")

    def on_body(self, chunk: bytes) -> None:
        """Take a part of the body."""
        room = self._limit - len(self._body)
        if self._unpack is None:
            self._body += chunk[:room]
            self.answer.cut |= len(chunk) > room
            return
        self._body += self._unpack.decompress(chunk, room) if room else b""
        self.answer.cut |= bool(self._unpack.unconsumed_tail) or not room

    def on_message_complete(self) -> None:
        """Note the end; an informational answer (1xx) is followed by the real one."""
        if self.started:
            self.complete = True
        else:
            self.answer = HttpResponse()

    def finish(self) -> HttpResponse:
        """Return the answer with its body."""
        self.answer.body = bytes(self._body)
        return self.answer


async def send_request(
    url: PublicUrl, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int
) -> HttpResponse:
    """Ask for an address on an open connection; read at most `limit` bytes of unpacked body.

    Raises:
        ToolError: what came is not HTTP, or its head is too large.
        OSError: the connection broke before there was an answer.
    """
    writer.write(_REQUEST.format(target=url.target, authority=url.authority).encode("ascii"))
    await writer.drain()
    heard = _Reader(limit)
    parser = httptools.HttpResponseParser(heard)
    heard.status = parser.get_status_code
    head = 0
    while not heard.complete and not heard.answer.cut:
        chunk = await reader.read(_CHUNK)
        if not chunk:
            break
        _feed(parser, chunk)
        head += 0 if heard.started else len(chunk)
        if head > _HEAD_LIMIT:
            raise ToolError("the server's answer has too many headers")
    if not heard.started:
        raise ToolError("the server closed the connection without an answer")
    framed = {"content-length", "transfer-encoding"} & heard.answer.headers.keys()
    if framed and not heard.complete:
        heard.answer.cut = True
    return heard.finish()


def _feed(parser: httptools.HttpResponseParser, chunk: bytes) -> None:
    try:
        parser.feed_data(chunk)
    except httptools.HttpParserUpgrade as error:
        raise ToolError("the server wants to speak another protocol than HTTP") from error
    except httptools.HttpParserError as error:
        if isinstance(error.__context__, ToolError):
            raise error.__context__ from error
        if isinstance(error.__context__, zlib.error):
            raise ToolError("what the server answered cannot be unpacked") from error
        raise ToolError("what the server answered is not HTTP") from error

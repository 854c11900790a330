"""Responses with the content of a file, or with a part of it."""

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol
from urllib.parse import quote

import msgspec
from starlette.responses import Response, StreamingResponse

from internal.agent.app.files.pages import read_page
from internal.agent.domain.errors import DocumentUnreadable
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.requests import RequestContext

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
_PARTIAL_CONTENT = 206


class OpenContent(Protocol):
    """Returns the bytes from `start` up to, without, `end`."""

    def __call__(self, *, start: int, end: int) -> AsyncIterator[bytes]:
        """Return the bytes. Raises while it is read: NotFound, StoreError."""
        ...


class Download(msgspec.Struct, frozen=True):
    """A file to send. `etag` names its content; `headers` replace the common ones."""

    name: str
    media_type: str
    size: int
    etag: str
    content: OpenContent
    inline: bool = False
    headers: Mapping[str, str] | None = None


async def file_response(context: RequestContext, file: Download) -> Response:
    """Return the response with a file, or with the part that the request asks for.

    Several parts at once are not supported: such a request gets the whole file.

    Raises:
        HttpError: the file has no such part.
        NotFound, StoreError: the content cannot be read.
    """
    etag = f'"{file.etag}"'
    start, end = _part(context, file.size, etag)
    is_part = end - start < file.size
    headers = {
        "accept-ranges": "bytes",
        "content-disposition": content_disposition(file.name, inline=file.inline),
        "content-length": str(end - start),
        "etag": etag,
        **(file.headers or {}),
    }
    if is_part:
        headers["content-range"] = f"bytes {start}-{end - 1}/{file.size}"
    status = _PARTIAL_CONTENT if is_part else 200
    if context.method == "HEAD":
        return Response(None, status, headers, file.media_type)
    content = file.content(start=start, end=end)
    first = await anext(content, b"")  # an error must come before the response begins
    return StreamingResponse(_chained(first, content), status, headers, file.media_type)


async def page_response(request: ApiRequest[Any, Any], sha256: str) -> Response:
    """Return the response with a page of a PDF as a picture; `number` in the path is the page.

    Raises:
        DocumentUnreadable: there is no such page, or the file cannot be read.
        NotFound: there is no such file.
    """
    services = request.services
    if services.documents is None:
        raise DocumentUnreadable("A terminal that only reads records shows no pages.")
    picture = await read_page(
        services.gateway.files, services.documents, sha256, request.number or 0
    )
    headers = {"larkspur-pages": str(picture.pages)}
    return Response(picture.content, 200, headers, picture.media_type)


def content_disposition(name: str, *, inline: bool = False) -> str:
    """Return the header that names a file, without the folders in its name."""
    last = name.rpartition("/")[2] or "file"
    plain = re.sub(r'[^ -~]|["\\%]', "_", last)
    kind = "inline" if inline else "attachment"
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(last, safe='')}"


async def _chained(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


def _part(context: RequestContext, size: int, etag: str) -> tuple[int, int]:
    """Return the part that the request asks for: from the first byte up to, without, the second."""
    ranges, conditions = context.headers(b"range"), context.headers(b"if-range")
    asked = _RANGE.fullmatch(ranges[0].decode("latin-1").strip()) if len(ranges) == 1 else None
    is_other = any(condition.decode("latin-1") != etag for condition in conditions)
    if asked is None or is_other or asked.groups() == ("", ""):
        return 0, size
    first, last = asked.groups()
    if first:
        start, end = int(first), min(int(last) + 1 if last else size, size)
    else:  # the last bytes
        start, end = max(0, size - int(last)), size
    if start >= end:
        message = f"The file has {size:,} bytes."
        raise HttpError(
            416,
            "range",
            message,
            {"content-range": f"bytes */{size}"},
            reason_code="byte_range",
            size=size,
        )
    return start, end

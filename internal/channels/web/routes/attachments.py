"""Routes for attachments."""

import re
from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from internal.agent.app.files.session_files import MAX_FILE_BYTES, SessionFiles
from internal.agent.domain.errors import InvalidRequest, NotFound
from internal.agent.domain.tasks import Attachment
from internal.channels.web.downloads import Download, file_response, page_response
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.requests import RequestContext
from internal.channels.web.schemas import (
    MEDIA_TYPE_PATTERN,
    AttachmentInput,
    CreateAttachmentRequest,
    EmptyRequest,
    Name,
    RequestModel,
    Sha256,
)

_SCHEME = "attachment:"
_SHA256 = re.compile(r"[0-9a-f]{64}")


class UploadQuery(RequestModel, frozen=True):
    """The name of a file to upload; `sha256` and `offset` continue an upload that was cut off."""

    name: Name
    sha256: Sha256 | UnsetType = UNSET
    offset: Annotated[int, Meta(ge=0, le=MAX_FILE_BYTES)] = 0


class UploadView(msgspec.Struct, frozen=True):
    """How many bytes of an upload arrived. When it is complete nothing needs to be sent."""

    sha256: str
    received: int
    complete: bool


class UnusedFilesQuery(RequestModel, frozen=True):
    """Where to continue: the `next_cursor` of the last answer."""

    cursor: Sha256 | UnsetType = UNSET


class UnusedFilesView(msgspec.Struct, frozen=True):
    """Unused files and their bytes, in a part of the store if there is a `next_cursor`."""

    files: int
    size: int
    next_cursor: str | None


async def find_unused_files(
    request: ApiRequest[UnusedFilesQuery, EmptyRequest],
) -> UnusedFilesView:
    """Count the stored files that nothing uses. Requires the owner role."""
    unused, cursor = request.services.gateway.files.unused, request.query.cursor or ""
    return UnusedFilesView(*await unused.find(request.principal, cursor))


async def remove_unused_files(
    request: ApiRequest[UnusedFilesQuery, EmptyRequest],
) -> UnusedFilesView:
    """Remove the stored files that nothing uses, and count them. Requires the owner role."""
    unused, cursor = request.services.gateway.files.unused, request.query.cursor or ""
    return UnusedFilesView(*await unused.remove(request.principal, cursor))


async def create_attachment(
    request: ApiRequest[EmptyRequest, CreateAttachmentRequest],
) -> Attachment:
    """Store a file. Equal content has the same URI."""
    file = request.body
    return await request.services.gateway.files.upload(
        request.principal.id, _file_name(file.name), file.media_type, file.data
    )


async def upload_attachment(
    request: ApiRequest[UploadQuery, AsyncGenerator[bytes]],
) -> Attachment:
    """Store a file whose bytes are the body.

    With `sha256` an upload that was cut off can be continued: `GET
    /api/attachments/{sha256}/upload` returns how many bytes arrived, which is the `offset` of the
    next request. A file that the principal has already is returned at once.
    """
    query, principal = request.query, request.principal.id
    files, name = request.services.gateway.files, _file_name(query.name)
    media_type = _media_type(request.context)
    if query.sha256:
        return await files.continue_upload(
            *(principal, name, media_type, request.body), sha256=query.sha256, offset=query.offset
        )
    if query.offset:
        raise InvalidRequest(
            "An offset needs the sha256 of the whole file.", reason_code="offset_without_hash"
        )
    return await files.upload_stream(principal, name, media_type, request.body)


async def show_page(request: ApiRequest[EmptyRequest, EmptyRequest]) -> Response:
    """Return a page of a PDF as a picture. `Larkspur-Pages` is the number of pages."""
    sha256 = request.path["sha256"]
    if _SHA256.fullmatch(sha256) is None:
        raise NotFound("There is no such attachment.", reason_code="no_attachment")
    return await page_response(request, sha256)


async def show_upload(request: ApiRequest[EmptyRequest, EmptyRequest]) -> UploadView:
    """Return how many bytes of an upload with `sha256` arrived."""
    sha256 = request.path["sha256"]
    if not _SHA256.fullmatch(sha256):
        raise NotFound(f"Attachment {sha256[:80]} does not exist.", reason_code="no_attachment")
    received, complete = await request.services.gateway.files.received(sha256, request.principal.id)
    return UploadView(sha256, received, complete)


async def download_attachment(request: ApiRequest[EmptyRequest, EmptyRequest]) -> Response:
    """Return the content of a file, or a part of it, which browsers neither show nor execute."""
    sha256 = request.path["sha256"]
    if not _SHA256.fullmatch(sha256):
        raise NotFound(f"Attachment {sha256[:80]} does not exist.", reason_code="no_attachment")
    files = request.services.gateway.files
    file = Download(
        name=sha256,
        media_type="application/octet-stream",
        size=await files.size(sha256),
        etag=sha256,
        content=partial(files.stream, sha256),
    )
    return await file_response(request.context, file)


async def store_attachments(
    files: SessionFiles, inputs: tuple[AttachmentInput, ...], principal: str
) -> tuple[Attachment, ...]:
    """Store the files of a principal's task that are sent inline and look up the others.

    Raises:
        InvalidRequest: An attachment has both data and uri, or neither, or an unknown uri.
    """
    return tuple(
        [await _store(files, item, principal, f"attachments[{n}]") for n, item in enumerate(inputs)]
    )


async def _store(
    files: SessionFiles, item: AttachmentInput, principal: str, field: str
) -> Attachment:
    name = _file_name(item.name)
    if item.data is not None and item.uri is None:
        return await files.upload(principal, name, item.media_type, item.data)
    if item.uri is None or item.data is not None:
        raise InvalidRequest(
            f"{field} needs either data or uri.",
            reason_code="attachment_without_content",
            field=field,
        )
    sha256 = item.uri.removeprefix(_SCHEME)
    try:
        size = await files.keep_uploaded(sha256, principal)
    except NotFound as error:
        raise InvalidRequest(
            f"{field}.uri does not refer to a stored file.",
            reason_code="attachment_not_stored",
            field=field,
        ) from error
    return Attachment(name, item.media_type, item.uri, sha256, size)


def _media_type(context: RequestContext) -> str:
    """Return the Content-Type without its parameters."""
    values = [value.decode("latin-1") for value in context.headers(b"content-type")]
    media_type = values[0].partition(";")[0].strip().lower() if values else ""
    if len(values) > 1 or (media_type and not re.match(MEDIA_TYPE_PATTERN, media_type)):
        raise HttpError(415, "unsupported_media_type", "The Content-Type is not a media type.")
    return media_type or "application/octet-stream"


def _file_name(name: str) -> str:
    """Return a file name without directories and control characters, for display only."""
    last = re.split(r"[/\\]", name)[-1]
    return "".join(c if c.isprintable() else "_" for c in last).strip(". ") or "file"

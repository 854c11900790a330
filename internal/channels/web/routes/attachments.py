"""Routes for attachments."""

import re

from starlette.responses import Response

from internal.agent.app.files.session_files import SessionFiles
from internal.agent.domain.errors import InvalidRequest, NotFound
from internal.agent.domain.tasks import Attachment
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.schemas import AttachmentInput, CreateAttachmentRequest, EmptyRequest

_SCHEME = "attachment:"
_SHA256 = re.compile(r"[0-9a-f]{64}")


async def create_attachment(
    request: ApiRequest[EmptyRequest, CreateAttachmentRequest],
) -> Attachment:
    """Store a file. Equal content has the same URI."""
    file = request.body
    return await request.services.gateway.files.upload(
        request.principal.id, _file_name(file.name), file.media_type, file.data
    )


async def download_attachment(request: ApiRequest[EmptyRequest, EmptyRequest]) -> Response:
    """Return the content of a file as a download, which browsers neither show nor execute."""
    sha256 = request.path["sha256"]
    if not _SHA256.fullmatch(sha256):
        raise NotFound(f"Attachment {sha256[:80]} does not exist.")
    content = await request.services.gateway.files.get(sha256)
    return Response(
        content,
        media_type="application/octet-stream",
        headers={"content-disposition": f'attachment; filename="{sha256}"'},
    )


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
        raise InvalidRequest(f"{field} needs either data or uri.")
    sha256 = item.uri.removeprefix(_SCHEME)
    try:
        size = await files.keep_uploaded(sha256, principal)
    except NotFound as error:
        raise InvalidRequest(f"{field}.uri does not refer to a stored file.") from error
    return Attachment(name, item.media_type, item.uri, sha256, size)


def _file_name(name: str) -> str:
    """Return a file name without directories and control characters, for display only."""
    last = re.split(r"[/\\]", name)[-1]
    return "".join(c if c.isprintable() else "_" for c in last).strip(". ") or "file"

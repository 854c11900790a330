"""Routes of files."""

import re

from starlette.responses import Response

from internal.agent.domain.errors import InvalidRequest, NotFound
from internal.agent.domain.tasks import Attachment
from internal.agent.ports.attachments import Attachments
from internal.channels.web.endpoints import Call
from internal.channels.web.schemas import GivenAttachment, GivenFile, Nothing

_SCHEME = "attachment:"
_SHA256 = re.compile(r"[0-9a-f]{64}")


async def keep_file(call: Call[Nothing, GivenFile]) -> Attachment:
    """Keep a file; the same bytes have the same uri."""
    given = call.body
    return await call.door.attachments.put(_clean(given.name), given.media_type, given.data)


async def read_file(call: Call[Nothing, Nothing]) -> Response:
    """Return a file's bytes, as a download: a browser never shows or runs them."""
    sha256 = call.path["sha256"]
    if not _SHA256.fullmatch(sha256):
        raise NotFound(f"There is no file {sha256[:80]}.")
    content = await call.door.attachments.get(sha256)
    return Response(
        content,
        media_type="application/octet-stream",
        headers={"content-disposition": f'attachment; filename="{sha256}"'},
    )


async def kept(
    attachments: Attachments, given: tuple[GivenAttachment, ...]
) -> tuple[Attachment, ...]:
    """Keep what came with a task and find what was kept before.

    Raises:
        Malformed: one has both data and a uri, or neither, or its uri names nothing.
    """
    return tuple([await _kept(attachments, index, one) for index, one in enumerate(given)])


async def _kept(attachments: Attachments, index: int, given: GivenAttachment) -> Attachment:
    where = f"attachments[{index}]"
    name = _clean(given.name)
    if given.data is not None and given.uri is None:
        return await attachments.put(name, given.media_type, given.data)
    if given.uri is None or given.data is not None:
        raise InvalidRequest(f"{where} needs either data or uri.")
    sha256 = given.uri.removeprefix(_SCHEME)
    if sha256 == given.uri or not _SHA256.fullmatch(sha256):
        raise InvalidRequest(f"{where}.uri must be attachment: and the sha256 of a file kept here.")
    try:
        content = await attachments.get(sha256)
    except NotFound as error:
        raise InvalidRequest(f"{where}.uri names a file that is not kept here.") from error
    return Attachment(name, given.media_type, given.uri, sha256, len(content))


def _clean(name: str) -> str:
    """Return a file's name without folders and control characters: it is shown, never opened."""
    last = re.split(r"[/\\]", name)[-1]
    return "".join(c if c.isprintable() else "_" for c in last).strip(". ") or "file"

"""The files of messages: their URIs, and their download from Lark.

The URI of a file is `lark:APP/MESSAGE/KEY?type=KIND`.
"""

import mimetypes
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote

from internal.agent.domain.errors import RemoteFileUnavailable
from internal.agent.domain.tasks import Attachment
from internal.agent.ports.attachments import RemoteContent
from internal.channels.lark.api import LarkClient, LarkRejected, LarkUnavailable

FileKind = Literal["image", "file"]

_URI = re.compile(r"lark:[^/]+/([^/?]+)/([^/?]+)\?type=(image|file)")
_REASONS = {
    234003: "the message no longer contains it",
    234037: "it is larger than 100 MB, which Lark does not send to apps",
    234038: "the chat does not allow downloads",
    234043: "Lark does not send the files of cards and forwarded messages to apps",
    230110: "its message was deleted",
    230002: "the bot is not in its chat any more",
    99991672: "the app lacks the permission to read messages (im:message:readonly)",
}


class LarkFile(NamedTuple):
    """A picture or a file of a message; `media_type` "" follows from its name."""

    key: str
    kind: FileKind
    name: str
    media_type: str = ""


def as_attachments(files: Sequence[LarkFile], app: str, message_id: str) -> tuple[Attachment, ...]:
    """Return the files of a message of an app as attachments that are still to be fetched."""
    return tuple(
        Attachment(
            name=file.name,
            media_type=file.media_type or _guess_type(file),
            uri=f"lark:{app}/{quote(message_id, safe='')}/{quote(file.key, safe='')}"
            f"?type={file.kind}",
            sha256="",
            size=0,
        )
        for file in files
    )


def _guess_type(file: LarkFile) -> str:
    default = "image/*" if file.kind == "image" else "application/octet-stream"
    return mimetypes.guess_type(file.name)[0] or default


@asynccontextmanager
async def open_file(client: LarkClient, uri: str) -> AsyncGenerator[RemoteContent]:
    """Open the download of a file; at most a few chunks are held in memory.

    Raises:
        RemoteFileUnavailable: also while the chunks are read.
    """
    found = _URI.fullmatch(uri)
    if found is None:
        raise RemoteFileUnavailable("its address is not valid")
    message_id, key, kind = (unquote(each) for each in found.groups())
    path = f"/open-apis/im/v1/messages/{quote(message_id, safe='')}/resources/{quote(key, safe='')}"
    try:
        async with client.download(path, {"type": kind}) as (content_type, chunks):
            media_type = content_type.partition(";")[0].strip()
            is_known = kind == "image" and media_type.startswith("image/")
            yield RemoteContent(media_type if is_known else "", chunks)
    except LarkRejected as error:
        reason = _REASONS.get(error.code, f"Lark refuses it ({error.code})")
        raise RemoteFileUnavailable(reason) from error
    except LarkUnavailable as error:
        raise RemoteFileUnavailable(
            f"Lark does not send it now: {error}", is_temporary=True
        ) from error

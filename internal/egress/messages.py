"""A request, its response or failure, and the encoding of a form with a file."""

import secrets
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from yarl import URL

UploadedFile = tuple[str, bytes, str]
"""The name, content and media type of a file in a form."""

# As browsers do it (WHATWG). A backslash is doubled: many servers take it for an escape.
_QUOTED = {ord('"'): "%22", ord("\\"): "\\\\"} | {code: f"%{code:02X}" for code in range(0x20)}


class SessionRequest(NamedTuple):
    """A request to an absolute URL. `is_idempotent`: it may be sent twice, whatever its method."""

    method: str
    url: "URL"
    headers: Mapping[str, str]
    body: bytes | None = None
    is_idempotent: bool = False


class SessionResponse(NamedTuple):
    """A whole response. The names of `headers` are compared without regard to case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES


FailureKind = Literal[
    "unusable",  # the URL, or the proxy on the way to it
    "unknown_host",
    "refused",
    "unreachable",
    "proxy",
    "certificate",
    "no_tls",
    "silent",
    "not_http",
    "large_head",
    "closed",  # before a response
    "broken_off",  # during a response
]


class Failure(NamedTuple):
    """The failure of a request. `reason` is "" if the kind says everything."""

    kind: FailureKind
    reason: str


def quoted_url(text: str) -> "URL":
    """Return the URL that a text is, without quoting it again."""
    from yarl import URL  # noqa: PLC0415  # slow import; comes with aiohttp

    return URL(text, encoded=True)


def encode_form(
    fields: Mapping[str, str], file: UploadedFile, file_field: str = "file"
) -> tuple[str, bytes]:
    """Return the media type and the body of a form (multipart/form-data, RFC 7578).

    The names of fields hold no quotes or line breaks.
    """
    boundary = secrets.token_hex(16)
    name, content, media_type = file
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="'
    texts = "".join(f'{head}{field}"\r\n\r\n{text}\r\n' for field, text in fields.items())
    file_head = (
        f'{head}{file_field}"; filename="{name.translate(_QUOTED)}"\r\n'
        f"Content-Type: {media_type}\r\n\r\n"
    )
    body = b"".join([(texts + file_head).encode(), content, f"\r\n--{boundary}--\r\n".encode()])
    return f"multipart/form-data; boundary={boundary}", body

"""Pictures in the replies of models: taken out of data URLs, and named after their bytes.

The forms are those of Chat Completions with pictures:

- `images`, a list of `{"type": "image_url", "image_url": {"url": …}}` in a message or its deltas:
  OpenRouter (https://openrouter.ai/docs/features/multimodal/image-generation), Vercel's gateway,
  LiteLLM's proxy.
- The same entry, or one of type `output_image`, in a `content` that is a list.
"""

import base64
import binascii
import hashlib
import re

from internal.agent.domain.text import truncate
from internal.agent.ports.llm import ReplyPicture

PICTURE_TYPES = frozenset({"image_url", "output_image", "image"})
"""The types of pieces of content that are pictures."""
MAX_PICTURES = 8
MAX_PICTURE_BYTES = 16 * 1024 * 1024
"""Of all pictures in one reply."""
_TOO_LARGE = f"a reply may have {MAX_PICTURE_BYTES // 1024**2} MB of pictures"
_MAX_URL_CHARACTERS = 2_000
_NAME_CHARACTERS = 8
_DATA_URL = re.compile(r"data:[^,]{0,200};base64,", re.IGNORECASE)
# The format of the bytes counts, not the label in the URL: Gemini labels JPEG as PNG at times.
_KINDS = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "png", "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "jpg", "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "gif", "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "webp", "image/webp"),
)


class ReplyPictures:
    """The pictures of one reply while it is streamed."""

    def __init__(self) -> None:
        self.pictures: list[ReplyPicture] = []
        self.refused = 0
        self._lines: set[str] = set()
        self._size = 0

    def add(self, piece: object) -> str:
        """Take a picture and return the line that replaces it in the text.

        It is "" if the reply has the same picture already: some servers send it once more at the
        end. A picture that cannot be kept is counted, and its line says why.
        """
        line = f"[picture: {self._take(_url_in(piece))}]"
        if line in self._lines:
            return ""
        self._lines.add(line)
        return line

    def _take(self, url: str) -> str:
        """Return the name of a picture, its address, or why it cannot be kept."""
        if re.match(r"https?://", url):
            return truncate(url, _MAX_URL_CHARACTERS)
        content, problem = _decoded(url)
        name, media_type = _name_and_type(content)
        if any(known.name == name for known in self.pictures):
            return name
        if content and not name:
            problem = "its data is no picture"
        elif len(self.pictures) == MAX_PICTURES:
            problem = f"a reply may have {MAX_PICTURES}"
        elif self._size + len(content) > MAX_PICTURE_BYTES:
            problem = _TOO_LARGE
        if problem:
            self.refused += 1
            return f"not kept, {problem}"
        self._size += len(content)
        self.pictures.append(ReplyPicture(name, media_type, content))
        return name


def _url_in(piece: object) -> str:
    match piece:
        case {"image_url": {"url": str(url)}} | {"image_url": str(url)} | {"url": str(url)}:
            return url
        case {"b64_json": str(data)} | {"source": {"type": "base64", "data": str(data)}}:
            return f"data:;base64,{data}"
        case _:
            return ""


def _decoded(url: str) -> tuple[bytes, str]:
    """Return the bytes of a data URL, or none and the problem."""
    start = _DATA_URL.match(url)
    if start is None:
        return b"", "it has no data"
    data = url[start.end() :]
    if len(data) > MAX_PICTURE_BYTES * 4 // 3 + 4:
        return b"", _TOO_LARGE
    try:
        content = base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return b"", "its data is damaged"
    return content, "" if content else "it has no data"


def _name_and_type(content: bytes) -> tuple[str, str]:
    """Return a name that only the same picture has, and the media type; "" for no picture."""
    for start, extension, media_type in _KINDS:
        if start.match(content):
            digest = hashlib.sha256(content).hexdigest()[:_NAME_CHARACTERS]
            return f"picture-{digest}.{extension}", media_type
    return "", ""

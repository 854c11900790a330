"""The messages of a request, in the form in which all APIs hand them on."""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.text import truncate
from internal.channels.web.schemas import AttachmentInput

MessageRole = Literal["instructions", "user", "assistant", "tool"]
"""Author of a message. `instructions` come from the program."""

MAX_CALL_CHARACTERS = 500
"""Number of characters of the arguments of an earlier call that a transcript shows."""

_ROLES: dict[str, MessageRole] = {
    "system": "instructions",
    "developer": "instructions",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_TEXTS = frozenset({"text", "input_text", "output_text", "summary_text"})
_LEFT_OUT = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
_DATA_URL = re.compile(
    r"data:([a-z0-9.+-]{1,40}/[a-z0-9.+-]{1,100})(?:;[a-z0-9=_.-]{1,100})*;base64,(.*)",
    re.DOTALL | re.IGNORECASE,
)
_BLANKS = re.compile(r"\s+")
_SUFFIXES = {
    "image/jpeg": "jpg",
    "image/svg+xml": "svg",
    "audio/mpeg": "mp3",
    "text/plain": "txt",
}


class SentFile(NamedTuple):
    """A file of a message. `url` is a data URL, or an address that is not fetched.

    `name` is "" for a picture or a recording that has none.
    """

    kind: Literal["image", "audio", "file"]
    url: str
    name: str = ""


class Unreadable(NamedTuple):
    """A part of a message that cannot be used, and its type."""

    type: str


MessagePart = str | SentFile | Unreadable


class ConversationMessage(NamedTuple):
    """A message of a conversation. `calls` describes its calls of tools of the program."""

    role: MessageRole
    parts: tuple[MessagePart, ...]
    calls: str = ""

    @property
    def text(self) -> str:
        """The text of the message."""
        return "\n".join(part for part in self.parts if isinstance(part, str))

    @property
    def files(self) -> tuple[SentFile, ...]:
        """The files of the message."""
        return tuple(part for part in self.parts if isinstance(part, SentFile))


class CompletionInput(msgspec.Struct, frozen=True):
    """A message of a conversation.

    The roles are `system`, `developer`, `user`, `assistant`, `tool` and `function`. The content is
    a text or a list of parts: `text`, `image_url`, `file` and `input_audio`, the last three with
    their data in base64. Fields that are not listed have no effect.
    """

    role: str
    content: (
        str
        | Annotated[list[Any], Meta(max_length=1_000)]
        | Annotated[dict[str, Any], Meta(max_length=100)]
        | None
    ) = None
    tool_calls: Any = None
    function_call: Any = None


def read_messages(inputs: Sequence[CompletionInput]) -> list[ConversationMessage]:
    """Return the messages of a request for chat completions.

    Raises:
        InvalidRequest: a message has a role that is not known.
    """
    return [_read_message(each, f"messages[{n}]") for n, each in enumerate(inputs)]


def read_role(name: str, field: str) -> MessageRole:
    """Return the role of a message.

    Raises:
        InvalidRequest: it is not known.
    """
    if role := _ROLES.get(name):
        return role
    raise InvalidRequest(f"{field}.role is {name[:40]!r}; the roles are: {', '.join(_ROLES)}.")


def read_content(content: object) -> tuple[MessagePart, ...]:
    """Return the content of a message as its parts: a text, a part, or a list of them."""
    if content is None:
        return ()
    if isinstance(content, list):
        return tuple(part for each in content for part in _read_part(each))
    return tuple(_read_part(content))


def describe_calls(calls: object) -> str:
    """Return which tools of the program an earlier message called, "" if it called none."""
    found = [each for each in _as_list(calls) if isinstance(each, Mapping)]
    return "\n".join(map(_describe_call, found))


def read_file(file: SentFile, number: int) -> AttachmentInput:
    """Return a file of a message; one without a name gets its number.

    Raises:
        InvalidRequest: it is not a data URL, or not valid.
    """
    about = f"{file.kind} {number}"
    match = _DATA_URL.fullmatch(file.url)
    if match is None:
        example = "data:image/png;base64,…" if file.kind == "image" else "data:TYPE;base64,…"
        which = "An image" if file.kind == "image" else f"The data of {about}"
        raise InvalidRequest(f"{which} must be a data URL, such as {example}.")
    media_type = match[1].lower()
    if file.kind == "image" and not media_type.startswith("image/"):
        raise InvalidRequest(f"The data of {about} is {media_type}, which is no image.")
    try:
        content = b64decode(_BLANKS.sub("", match[2]), validate=True)
    except (Base64Error, ValueError) as error:
        raise InvalidRequest(f"The data of {about} is not valid base64.") from error
    suffix = _SUFFIXES.get(media_type, media_type.partition("/")[2])
    return AttachmentInput(file.name or f"{file.kind}-{number}.{suffix}", media_type, content)


def _read_message(given: CompletionInput, field: str) -> ConversationMessage:
    calls = [*_as_list(given.tool_calls), *_as_list(given.function_call)]
    return ConversationMessage(
        read_role(given.role, field), read_content(given.content), describe_calls(calls)
    )


def _read_part(part: object) -> Iterator[MessagePart]:
    if isinstance(part, str):
        yield part
        return
    if not isinstance(part, Mapping):
        yield Unreadable(type(part).__name__)
        return
    kind = str(part.get("type") or ("text" if "text" in part else ""))
    if kind in _TEXTS:
        text = part.get("text") or ""
        yield str(text.get("value") or "" if isinstance(text, Mapping) else text)
    elif kind == "refusal":
        yield str(part.get("refusal") or "")
    elif kind not in _LEFT_OUT:
        yield _read_file_part(kind, part) or Unreadable(kind or "without a type")


def _read_file_part(kind: str, part: Mapping[str, Any]) -> SentFile | None:
    """Return the file of a part, None if the part is of another kind or names no data."""
    match kind:
        case "image_url" | "input_image" | "image":
            given = part.get("image_url") or part.get("image") or part.get("source") or ""
            url = _image_url(given)
            return SentFile("image", url) if url else None
        case "input_audio":
            given = part.get("input_audio")
            given = given if isinstance(given, Mapping) else {}
            form = str(given.get("format") or "wav")
            media_type = "audio/mpeg" if form == "mp3" else f"audio/{form}"
            data = given.get("data")
            return SentFile("audio", _data_url(str(data), media_type)) if data else None
        case "file" | "input_file":
            given = part.get("file")
            given = given if isinstance(given, Mapping) else part
            data, name = given.get("file_data") or given.get("data"), given.get("filename")
            if not data:
                return None
            url = _data_url(str(data), "application/octet-stream")
            return SentFile("file", url, str(name or ""))
        case _:
            return None


def _image_url(given: object) -> str:
    """Return the address of an image: a text, an object with `url`, or one with its data."""
    if isinstance(given, Mapping):
        if data := given.get("data"):
            return _data_url(str(data), str(given.get("media_type") or "image/png"))
        given = given.get("url") or ""
    return str(given)


def _data_url(data: str, media_type: str) -> str:
    return data if data.startswith("data:") else f"data:{media_type};base64,{data}"


def _as_list(given: object) -> list[Any]:
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def _describe_call(call: Mapping[str, Any]) -> str:
    function = call.get("function")
    named = function if isinstance(function, Mapping) else call
    arguments = named.get("arguments") or ""
    shown = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    name = str(named.get("name") or "a tool")[:100]
    return f"(called {name}: {truncate(shown, MAX_CALL_CHARACTERS)})"

"""Recorded sessions that the demo model replays, with the replies of the recorded model.

A recording is a file of JSON lines, as `larkspur sessions export ID FILE --recording` writes it: a
`request` of a person, then each `reply` of the model with its tool calls. Results of tools are not
recorded: tools run again, under the rules of the machine.
"""

import hashlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.messages import Message, Part, Text, ToolCall
from internal.agent.ports.llm import ModelRequest, ModelStreamEvent
from internal.llm.offline.conversation import read_words
from internal.llm.offline.model import OfflineModel, stream_parts

MAX_BYTES = 20_000_000


class RecordedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call."""

    name: str
    arguments: dict[str, Any] = {}


class RecordedRequest(msgspec.Struct, frozen=True, tag="request", forbid_unknown_fields=True):
    """A request of a person."""

    text: str


class RecordedReply(msgspec.Struct, frozen=True, tag="reply", forbid_unknown_fields=True):
    """A reply of the model."""

    text: str = ""
    calls: tuple[RecordedCall, ...] = ()


Recording = dict[str, list[RecordedReply]]
"""The replies to each request, by its text without case and outer blanks."""

_LINE = msgspec.json.Decoder(RecordedRequest | RecordedReply)


def read_recording(path: Path) -> Recording:
    """Read a recording; of a request that occurs twice the last one counts.

    Raises:
        InvalidRequest: it cannot be read, or a line is not that of a recording.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or "unknown error").lower()
        raise InvalidRequest(f"The recording {path} cannot be read: {reason}.") from None
    if len(content) > MAX_BYTES:
        raise InvalidRequest(f"The recording {path} is larger than {MAX_BYTES:,} bytes.")
    found: Recording = {}
    replies: list[RecordedReply] | None = None
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = _LINE.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidRequest(f"The recording {path}, line {number}: {error}.") from None
        if isinstance(entry, RecordedRequest):
            replies = found[_key(entry.text)] = []
        elif replies is None:
            raise InvalidRequest(f"The recording {path}, line {number}: a request must be first.")
        else:
            replies.append(entry)
    if not found:
        raise InvalidRequest(f"The recording {path} is empty.")
    return found


class RecordedModel(OfflineModel):
    """The demo model with a recording.

    A request of the recording gets its replies; all others get replies of the demo model.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield the text word by word, then one `ModelResponse`."""
        reply = self._next_reply(request.messages)
        if reply is None:
            async for event in super().stream(request):
                yield event
            return
        async for event in stream_parts(request, tuple(_parts(request, reply))):
            yield event

    def _next_reply(self, messages: Sequence[Message]) -> RecordedReply | None:
        """Return the reply to the newest request of the recording; None after the last one."""
        for at in range(len(messages) - 1, -1, -1):
            message = messages[at]
            replies = self._recording.get(_key(read_words(message)))
            if message.role == "user" and replies is not None:
                given = sum(one.role == "assistant" for one in messages[at + 1 :])
                return replies[given] if given < len(replies) else None
        return None


def _parts(request: ModelRequest, reply: RecordedReply) -> Iterator[Part]:
    known = {tool.name for tool in request.tools}
    missing = sorted({call.name for call in reply.calls} - known)
    calls = () if missing or request.tool_choice == "none" else reply.calls
    text = reply.text
    if missing:
        text += f"\n\nThe recording goes on with {', '.join(missing)}, which is not available here."
    if text.strip() or not calls:
        yield Text(text.strip() or "The recording ends here.")
    seed = f"{len(request.messages)} {request.messages[-1].text}".encode("utf-8", "replace")
    digest = hashlib.blake2s(seed, digest_size=8).hexdigest()
    for number, call in enumerate(calls):
        yield ToolCall(f"recorded_{digest}_{number}", call.name, call.arguments)


def _key(text: str) -> str:
    return text.strip().casefold()

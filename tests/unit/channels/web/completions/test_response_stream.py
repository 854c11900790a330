"""The events of a streamed response, checked by the types of OpenAI's client library."""

from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from internal.agent.domain.usage import Usage
from internal.channels.web.completions.replies import PING, ReplyEnd
from internal.channels.web.completions.response_objects import ResponseObject
from internal.channels.web.completions.response_stream import ResponseStream
from internal.channels.web.errors import HttpError

BEGUN = ResponseObject(id="resp_run-1", created_at=1, model="larkspur", status="in_progress")
BEGIN = ["response.created", "response.in_progress"]
ADDED = ["response.output_item.added", "response.content_part.added"]
DONE = ["response.output_text.done", "response.content_part.done", "response.output_item.done"]
DELTA = "response.output_text.delta"


class WrittenReply:
    """A reply with these pieces, and then an end or an error."""

    id = "run-1"

    def __init__(self, *written: str, end: ReplyEnd | HttpError) -> None:
        self._written, self._end = written, end
        self.is_left = False

    async def whole(self) -> ReplyEnd:
        return await self.end()

    async def pieces(self) -> AsyncGenerator[str]:
        for piece in self._written:
            yield piece

    async def end(self) -> ReplyEnd:
        if isinstance(self._end, HttpError):
            raise self._end
        return self._end

    async def leave(self) -> None:
        self.is_left = True


async def events_of(reply: WrittenReply) -> list[Any]:
    from openai.types.responses import ResponseStreamEvent  # noqa: PLC0415 - slow to import
    from pydantic import TypeAdapter  # noqa: PLC0415 - slow to import

    adapter: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    frames = [frame async for frame in ResponseStream(reply, BEGUN).events() if frame != PING]
    assert reply.is_left
    events = []
    for number, frame in enumerate(frames):
        name, data, *rest = frame.decode().split("\n")
        assert rest == ["", ""]
        event = msgspec.json.decode(data.removeprefix("data: "))
        assert (name, event["sequence_number"]) == (f"event: {event['type']}", number)
        events.append(adapter.validate_python(event))
    return events


async def test_text_is_one_message_and_the_rest_of_the_answer_follows() -> None:
    end = ReplyEnd("one two", " two", Usage(3, 2), is_cut=False)
    events = await events_of(WrittenReply("", "on", "e", "", end=end))
    assert [event.type for event in events] == [
        *BEGIN,
        *ADDED,
        *[DELTA] * 3,
        *DONE,
        "response.completed",
    ]
    assert events[-1].response.output_text == "one two"
    assert events[-1].response.usage.total_tokens == 5


async def test_an_empty_answer_is_an_empty_message() -> None:
    events = await events_of(WrittenReply(end=ReplyEnd("", "", Usage(), is_cut=False)))
    assert [event.type for event in events] == [*BEGIN, *ADDED, *DONE, "response.completed"]
    assert events[-1].response.output_text == ""


async def test_what_was_written_before_a_failure_is_kept() -> None:
    events = await events_of(WrittenReply("half", end=HttpError(502, "run_failed", "Bad.")))
    assert [event.type for event in events] == [*BEGIN, *ADDED, DELTA, *DONE, "response.failed"]
    failed = events[-1].response
    assert (failed.error.message, failed.error.code) == ("Bad.", "invalid_prompt")
    assert (failed.output_text, failed.output[0].status) == ("half", "incomplete")

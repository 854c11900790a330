"""The events of a streamed response."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec.structs import replace

from internal.channels.web.completions.replies import PING, CompletionReply
from internal.channels.web.completions.response_objects import (
    OutputMessage,
    OutputText,
    ResponseObject,
    ended_response,
    failed_response,
    output_of,
)
from internal.channels.web.errors import HttpError


class ResponseStream:
    """Server-sent events of a response with one message, numbered from 0."""

    def __init__(self, reply: CompletionReply, response: ResponseObject) -> None:
        """Args: response is the response in its initial state."""
        self._reply = reply
        self._response = response
        self._number = -1
        self._text = ""
        self._place = {"item_id": output_of(response.id, "", "completed").id, "output_index": 0}

    async def events(self) -> AsyncGenerator[bytes]:
        """Yield the events."""
        yield self._about_response("response.created", self._response)
        yield self._about_response("response.in_progress", self._response)
        try:
            async with aclosing(self._reply_events()) as events:
                async for event in events:
                    yield event
        finally:
            await self._reply.leave()

    async def _reply_events(self) -> AsyncGenerator[bytes]:
        try:
            async with aclosing(self._reply.pieces()) as pieces:
                async for piece in pieces:
                    for event in self._added(piece) if piece else [PING]:
                        yield event
            end = await self._reply.end()
        except HttpError as error:
            for event in self._failed(error):
                yield event
            return
        for event in self._added(end.rest):
            yield event
        ended = ended_response(self._response, replace(end, answer=self._text))
        for event in self._done(ended.output[0]):
            yield event
        is_complete = ended.status == "completed"
        name = "response.completed" if is_complete else "response.incomplete"
        yield self._about_response(name, ended)

    def _added(self, piece: str) -> list[bytes]:
        """Return the events for new text, preceded once by the events that begin the message."""
        events = [] if self._has_begun else self._begin()
        if piece:
            self._text += piece
            delta = {**self._content, "delta": piece, "logprobs": []}
            events.append(self._event("response.output_text.delta", delta))
        return events

    @property
    def _has_begun(self) -> bool:
        return self._number > 1

    @property
    def _content(self) -> dict[str, Any]:
        return {**self._place, "content_index": 0}

    def _begin(self) -> list[bytes]:
        item = replace(output_of(self._response.id, "", "in_progress"), content=())
        return [
            self._event("response.output_item.added", {"output_index": 0, "item": item}),
            self._event("response.content_part.added", {**self._content, "part": OutputText("")}),
        ]

    def _done(self, item: OutputMessage) -> list[bytes]:
        part = OutputText(self._text)
        text = {**self._content, "text": self._text, "logprobs": []}
        return [
            self._event("response.output_text.done", text),
            self._event("response.content_part.done", {**self._content, "part": part}),
            self._event("response.output_item.done", {"output_index": 0, "item": item}),
        ]

    def _failed(self, error: HttpError) -> list[bytes]:
        """Return the events of a failure; a message that has begun is incomplete."""
        events: list[bytes] = []
        output: tuple[OutputMessage, ...] = ()
        if self._has_begun:
            output = (output_of(self._response.id, self._text, "incomplete"),)
            events = self._done(output[0])
        failed = failed_response(self._response, error, output)
        return [*events, self._about_response("response.failed", failed)]

    def _about_response(self, name: str, response: ResponseObject) -> bytes:
        return self._event(name, {"response": response})

    def _event(self, name: str, content: dict[str, Any]) -> bytes:
        self._number += 1
        event = {"type": name, "sequence_number": self._number, **content}
        return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(event))

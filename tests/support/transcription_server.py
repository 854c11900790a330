"""A local `POST /v1/audio/transcriptions` with scripted answers and the checks of OpenAI's API."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, Self

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

PATH = "/v1/audio/transcriptions"
_FIELDS = {"file", "model", "language", "prompt", "response_format", "temperature"}
_FORMATS = ("flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm")
_MAX_BYTES = 25 * 1024 * 1024


class Transcribed(NamedTuple):
    """A request that the server accepted."""

    fields: dict[str, str]
    file_name: str
    media_type: str
    content: bytes
    headers: dict[str, str]


class Spoken(NamedTuple):
    """An answer: words, or `body` as it stands. `hang`: there is none until the client leaves."""

    text: str = ""
    status: int = 200
    message: str = ""
    headers: Sequence[str] = ()
    body: bytes | None = None
    media_type: str = "application/json"
    hang: bool = False
    drop: bool = False

    def content(self) -> bytes:
        if self.body is not None:
            return self.body
        if self.status != 200:
            return json.dumps({"error": {"message": self.message, "type": "error"}}).encode()
        return json.dumps({"text": self.text, "usage": {"type": "duration", "seconds": 5}}).encode()


class TranscriptionServer:
    """The server, an async context manager. The last answer is repeated."""

    def __init__(self, *answers: Spoken, api_key: str | None = "sk-voice") -> None:
        self.answers = list(answers)
        self.requests: list[Transcribed] = []
        self.count = 0
        self.heard = asyncio.Event()
        self._api_key = api_key
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def environ(self) -> dict[str, str]:
        """The settings that use this server, as variables."""
        prefix = "LARKSPUR_AUDIO__TRANSCRIPTION__"
        key = {} if self._api_key is None else {f"{prefix}API_KEY": self._api_key}
        return {f"{prefix}MODEL": "whisper-1", f"{prefix}BASE_URL": self.base_url, **key}

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**26)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                line, headers = await _read_head(reader)
                body = await reader.readexactly(int(headers["content-length"]))
                answer = await self._answer(line, headers, body)
                if answer.drop:
                    break
                if answer.hang:
                    await reader.read(1)
                    break
                writer.write(_response(answer))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left
        finally:
            self._writers.discard(writer)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, line: str, headers: dict[str, str], body: bytes) -> Spoken:
        self.count += 1
        if line.split(" ")[:2] != ["POST", PATH]:
            return Spoken(status=404, message="Not found")
        key = None if self._api_key is None else f"Bearer {self._api_key}"
        if headers.get("authorization") != key:
            return Spoken(status=401, message="Incorrect API key provided.")
        if len(body) > _MAX_BYTES + 4_096:
            return Spoken(status=413, message="Maximum content size limit exceeded.")
        try:
            request = await _parse(headers, body)
        except MultiPartException as error:
            return Spoken(status=400, message=f"Could not parse multipart form: {error.message}")
        if problem := _problem(request):
            return Spoken(status=400, message=problem)
        self.requests.append(request)
        self.heard.set()
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]]:
    line, *rows = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    pairs = (row.split(": ", 1) for row in rows if row)
    return line, {name.lower(): value for name, value in pairs}


async def _parse(headers: dict[str, str], body: bytes) -> Transcribed:
    async def stream() -> AsyncGenerator[bytes]:
        yield body

    form = await MultiPartParser(Headers(headers), stream(), max_part_size=2**25).parse()
    fields = {name: value for name, value in form.multi_items() if isinstance(value, str)}
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise MultiPartException("there is no file")
    content = await file.read()
    await form.close()
    return Transcribed(fields, file.filename or "", file.content_type or "", content, headers)


def _problem(request: Transcribed) -> str:
    if unknown := request.fields.keys() - _FIELDS:
        return f"Unrecognized request argument supplied: {unknown.pop()}"
    if not request.fields.get("model"):
        return "you must provide a model parameter"
    if request.fields.get("response_format", "json") != "json":
        return "response_format is not compatible with this model"
    if request.file_name.rpartition(".")[2] not in _FORMATS:
        return f"Unrecognized file format. Supported formats: {list(_FORMATS)}"
    return "" if request.content else "The audio file could not be decoded"


def _response(answer: Spoken) -> bytes:
    content = answer.content()
    rows = [
        f"HTTP/1.1 {answer.status} X",
        f"content-length: {len(content)}",
        f"content-type: {answer.media_type}",
        *answer.headers,
    ]
    return "\r\n".join([*rows, "", ""]).encode() + content

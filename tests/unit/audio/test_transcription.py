"""The client of the transcription service: against a local server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from pydantic import SecretStr

from internal.agent.domain.errors import AudioNotTranscribed
from internal.agent.ports.audio import Recording, Transcript
from internal.audio.transcription import TranscriptionClient
from internal.llm.retry import RetryPolicy
from internal.settings.settings import TranscriptionSettings
from tests.support import recordings
from tests.support.transcription_server import Spoken, TranscriptionServer

VOICE = recordings.ogg_opus(5.0)
OGG = Recording("audio/ogg", "ogg", 5.0)
QUICK = RetryPolicy(retries=2, first_seconds=0.001, max_seconds=0.002)


@asynccontextmanager
async def opened(
    server: TranscriptionServer, *, key: str | None = "sk-voice", timeout_seconds: float = 20.0
) -> AsyncGenerator[TranscriptionClient]:
    settings = TranscriptionSettings(
        model="whisper-1",
        base_url=server.base_url,
        api_key=None if key is None else SecretStr(key),
        language="zh",
        timeout_seconds=timeout_seconds,
    )
    client = TranscriptionClient(settings, "whisper-1", QUICK)
    try:
        yield client
    finally:
        await client.close()


async def failure(
    server: TranscriptionServer, timeout_seconds: float = 20.0
) -> AudioNotTranscribed:
    async with opened(server, timeout_seconds=timeout_seconds) as client:
        with pytest.raises(AudioNotTranscribed) as caught:
            await client.transcribe(VOICE, OGG)
    return caught.value


async def test_a_recording_is_sent_as_a_file_and_its_words_come_back() -> None:
    async with TranscriptionServer(Spoken(" 明天见。\n")) as server, opened(server) as client:
        assert await client.transcribe(VOICE, OGG) == Transcript("明天见。")
    (request,) = server.requests
    assert (request.file_name, request.media_type) == ("recording.ogg", "audio/ogg")
    assert request.content == VOICE
    assert request.fields == {"model": "whisper-1", "language": "zh", "response_format": "json"}
    assert not [name for name in request.headers if name.startswith(("x-stainless", "openai-"))]


async def test_the_length_and_language_of_the_service_are_returned() -> None:
    body = b'{"text": "hi", "language": "english", "duration": 4.5}'
    async with TranscriptionServer(Spoken(body=body)) as server, opened(server) as client:
        assert await client.transcribe(VOICE, OGG) == Transcript("hi", 4.5, "english")


async def test_a_service_without_keys_gets_none() -> None:
    server = TranscriptionServer(Spoken("hi"), api_key=None)
    async with server, opened(server, key=None) as client:
        assert (await client.transcribe(VOICE, OGG)).text == "hi"


async def test_a_service_that_is_busy_is_asked_again() -> None:
    answers = (Spoken(status=429, message="slow down"), Spoken(status=503), Spoken("hi"))
    async with TranscriptionServer(*answers) as server, opened(server) as client:
        assert (await client.transcribe(VOICE, OGG)).text == "hi"
    assert server.count == 3


@pytest.mark.parametrize(
    ("answer", "sentence", "tries", "is_outage"),
    [
        (Spoken(status=429, message="slow down"), "is rate-limiting requests: slow down", 3, True),
        (Spoken(status=500, message="<html>"), "is unavailable (500).", 3, True),
        (Spoken(drop=True), "Cannot connect to The transcription service.", 3, True),
        (
            Spoken(status=413, message="Maximum content size limit (26214400) exceeded"),
            "The recording is too large for the transcription service.",
            1,
            False,
        ),
        (Spoken(status=400, message="Invalid file."), "rejected the request (400): Inv", 1, False),
        (Spoken(status=429, message="", body=b'{"error":{"code":"insufficient_quota"}}'),
         "reports that the account has no credit", 1, False),
        (Spoken(body=b"{"), "The response of the transcription service cannot be read.", 1, False),
        (Spoken(body=b"[]"), "cannot be read.", 1, False),
        (Spoken(body=b'{"text": 5}'), "cannot be read.", 1, False),
        (Spoken(body=b"\xff\xfe", media_type="text/html"), "cannot be read.", 1, False),
        (Spoken(body=b"\xef\xbb\xbf", media_type="audio/ogg"), "cannot be read.", 1, False),
        (Spoken(body=b'{"text": "' + b"x" * 5_000_000), "cannot be read.", 1, False),
        (Spoken(" \n"), "recognised no words in the recording.", 1, False),
    ],
    ids=str,
)  # fmt: skip
async def test_a_failure_is_one_sentence(
    answer: Spoken, sentence: str, tries: int, is_outage: bool
) -> None:
    async with TranscriptionServer(answer) as server:
        error = await failure(server)
    assert sentence in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 400
    assert (server.count, error.is_outage) == (tries, is_outage)


async def test_a_wrong_key_is_named_by_its_setting_and_never_shown() -> None:
    async with TranscriptionServer(Spoken("hi"), api_key="sk-other") as server:
        error = await failure(server)
    assert "rejected the API key in audio.transcription.api_key" in str(error)
    assert "sk-" not in str(error)
    assert (server.count, error.is_outage) == (1, True)


async def test_a_service_that_never_answers_takes_no_longer_than_the_timeout() -> None:
    async with TranscriptionServer(Spoken(hang=True)) as server, asyncio.timeout(15):
        error = await failure(server, timeout_seconds=0.5)
    assert "did not answer within 0.5 s" in str(error) or "sent nothing for 0.5 s" in str(error)
    assert error.is_outage


async def test_a_long_wait_that_the_service_asks_for_is_not_waited_out() -> None:
    answer = Spoken(status=429, message="later", headers=["retry-after: 3600"])
    async with TranscriptionServer(answer) as server, asyncio.timeout(15):
        error = await failure(server)
    assert "is rate-limiting requests: later" in str(error)
    assert server.count == 1


async def test_a_cancelled_transcription_leaves_the_client_usable() -> None:
    server = TranscriptionServer(Spoken(hang=True), Spoken("hi"))
    async with server, opened(server) as client:
        task = asyncio.create_task(client.transcribe(VOICE, OGG))
        await server.heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await client.transcribe(VOICE, OGG)).text == "hi"

"""Recordings within limits."""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from internal.agent.domain.errors import AudioNotTranscribed
from internal.agent.ports.audio import Transcript
from internal.audio.reader import MAX_BYTES, TranscribingAudioReader
from internal.i18n.chat import ChatPhrases
from internal.settings.settings import TranscriptionSettings
from tests.support import recordings
from tests.support.transcription_server import Spoken, TranscriptionServer


@asynccontextmanager
async def opened(**settings: Any) -> AsyncGenerator[TranscribingAudioReader]:
    reader = TranscribingAudioReader(TranscriptionSettings(**settings))
    try:
        yield reader
    finally:
        await reader.close()


async def transcribe(reader: TranscribingAudioReader, content: bytes, size: int = 0) -> Transcript:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.truncate(size or len(content))
        recording = reader.inspect(file.fileno(), "audio/mpeg")
        assert recording is not None
        return await reader.transcribe(file.fileno(), recording)


async def test_a_recording_is_transcribed() -> None:
    async with (
        TranscriptionServer(Spoken("hi"), api_key=None) as server,
        opened(model="m", base_url=server.base_url) as reader,
    ):
        assert reader.can_transcribe
        assert (await transcribe(reader, recordings.ogg_opus())).text == "hi"


async def test_without_a_service_the_sentence_says_how_to_get_one() -> None:
    async with opened() as reader:
        assert not reader.can_transcribe
        with pytest.raises(AudioNotTranscribed, match=r"type .* audio\.transcription\.model"):
            await transcribe(reader, recordings.ogg_opus())


@pytest.mark.parametrize(
    ("content", "size", "sentence"),
    [
        (recordings.ogg_opus(61.0), 0, "longer than 1 minutes"),
        (recordings.wav(0.1), MAX_BYTES + 1, "larger than 25.0 MB"),
    ],
)
async def test_a_recording_above_a_limit_is_not_sent(
    content: bytes, size: int, sentence: str
) -> None:
    async with (
        TranscriptionServer(Spoken("hi"), api_key=None) as server,
        opened(model="m", base_url=server.base_url, max_minutes=1) as reader,
    ):
        with pytest.raises(AudioNotTranscribed, match=sentence):
            await transcribe(reader, content, size)
    assert server.count == 0


def test_a_notice_is_in_the_language_of_the_person() -> None:
    english, chinese = (ChatPhrases(each)("voice_not_heard") for each in ("en", "zh"))
    only = ChatPhrases("en")("only_files", names="a.ogg")
    notice = TranscribingAudioReader(TranscriptionSettings()).unheard_notice
    assert notice("when?", []) == (english, False)
    assert notice("几点", ["when?"]) == (chinese, False)
    assert notice(only, [only, "几点", "when?"]) == (chinese, True)
    assert notice(only, []) == (f"{english}\n\n{chinese}", True)
    fixed = TranscribingAudioReader(TranscriptionSettings(), "zh").unheard_notice
    assert fixed(only, ["when?"]) == (chinese, True)

"""`TranscribingAudioReader`: recordings and their transcripts, within limits."""

import os
from collections.abc import Sequence

from internal.agent.app.background_task import run_to_completion
from internal.agent.domain.errors import AudioNotTranscribed
from internal.agent.domain.text import format_size
from internal.agent.ports.audio import Recording, Transcript, UnheardNotice
from internal.agent.ports.fair_slots import FairSlots
from internal.audio.recordings import inspect_recording
from internal.audio.transcription import TranscriptionClient
from internal.i18n.chat import ChatTexts, is_without_words
from internal.i18n.language import LANGUAGES, LanguageSetting
from internal.settings.settings import TranscriptionSettings

MAX_BYTES = 25 * 1024 * 1024
"""The largest file that OpenAI's service takes."""
_CONCURRENCY = 4
_NOT_CONFIGURED = (
    "The recording was not heard: voice messages are not transcribed here. Please type the message,"
    " or ask the administrator to set audio.transcription.model."
)


class TranscribingAudioReader:
    """Implements `AudioReader` with the service of the settings, if they name a model."""

    def __init__(self, settings: TranscriptionSettings, language: LanguageSetting = "auto") -> None:
        model = settings.model
        self._texts = ChatTexts(language)
        self._client = None if model is None else TranscriptionClient(settings, model)
        self._max_minutes = settings.max_minutes
        self._slots = FairSlots(_CONCURRENCY)

    @property
    def can_transcribe(self) -> bool:
        """Whether a service is configured."""
        return self._client is not None

    def inspect(self, descriptor: int, media_type: str, /) -> Recording | None:
        """Return a description of a recording, None if the file is none; see the port."""
        return inspect_recording(descriptor, media_type)

    async def transcribe(self, descriptor: int, recording: Recording, /) -> Transcript:
        """Return the words of a recording; see the port.

        Raises:
            AudioNotTranscribed: there are no words; the sentence says why.
        """
        if self._client is None:
            raise AudioNotTranscribed(_NOT_CONFIGURED, is_outage=True)
        if recording.seconds is not None and recording.seconds > self._max_minutes * 60:
            raise AudioNotTranscribed(f"The recording is longer than {self._max_minutes} minutes.")
        if os.fstat(descriptor).st_size > MAX_BYTES:
            limit = format_size(MAX_BYTES)
            raise AudioNotTranscribed(f"The recording is larger than {limit}.")
        async with self._slots.take():
            content = await run_to_completion(os.pread, descriptor, MAX_BYTES, 0)
            return await self._client.transcribe(content, recording)

    def unheard_notice(self, instruction: str, earlier: Sequence[str], /) -> UnheardNotice:
        """Return the notice for a person as long as no service is configured; see the port.

        Without any words to detect the language, it is in every language.
        """
        is_answer = is_without_words(instruction)
        written = next((text for text in (instruction, *earlier) if not is_without_words(text)), "")
        if written or self._texts.language != "auto":
            phrases = [self._texts.phrases_for(written)]
        else:
            phrases = [self._texts.phrases_in(language) for language in LANGUAGES]
        return UnheardNotice("\n\n".join(each("voice_not_heard") for each in phrases), is_answer)

    async def close(self) -> None:
        """Close the connections. The reader cannot be used afterwards."""
        if self._client is not None:
            await self._client.close()

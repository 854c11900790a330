"""The client of a service that implements OpenAI's `POST /v1/audio/transcriptions`."""

import asyncio
import logging
import random
from http import HTTPStatus

import msgspec

from internal.agent.domain.errors import (
    AudioNotTranscribed,
    ModelError,
    ModelKeyRejected,
    ModelRejected,
    ModelUnavailable,
)
from internal.agent.ports.audio import Recording, Transcript
from internal.llm.errors import ProviderInfo
from internal.llm.refusals.errors import error_from_body
from internal.llm.retry import RetryPolicy
from internal.llm.transport import ApiKey, ProviderErrorResponse, ProviderHttpClient
from internal.settings.settings import TranscriptionSettings

MAX_RETRIES = 3
_PATH = "/audio/transcriptions"
_SERVICE = ProviderInfo("The transcription service", "audio.transcription.api_key")
_TOO_LARGE = "The recording is too large for the transcription service."
_UNREADABLE = "The response of the transcription service cannot be read."
_NO_WORDS = "The transcription service recognised no words in the recording."

logger = logging.getLogger(__name__)


class _Response(msgspec.Struct):
    text: str
    language: str | None = None
    duration: float | None = None


class TranscriptionClient:
    """Transcribes recordings. Creating one is instant; the first call imports the HTTP stack."""

    def __init__(
        self, settings: TranscriptionSettings, model: str, policy: RetryPolicy | None = None
    ) -> None:
        key = "" if settings.api_key is None else settings.api_key.get_secret_value()
        self._settings, self._model = settings, model
        self._policy = policy or RetryPolicy(retries=MAX_RETRIES)
        self._http = ProviderHttpClient(
            _SERVICE,
            settings.base_url,
            ApiKey(key),
            silence_seconds=settings.timeout_seconds,
        )

    async def transcribe(self, content: bytes, recording: Recording) -> Transcript:
        """Return the words of a recording.

        Raises:
            AudioNotTranscribed: the service returned none within the timeout.
        """
        timeout = self._settings.timeout_seconds
        try:
            await self._http.load()
            async with asyncio.timeout(timeout):
                return await self._with_retries(content, recording)
        except TimeoutError as error:
            logger.warning("transcription timed out", extra={"seconds": timeout})
            sentence = f"The transcription service did not answer within {timeout:g} s."
            raise AudioNotTranscribed(sentence, is_outage=True) from error
        except ModelError as error:
            logger.warning("transcription failed", extra={"detail": error.detail})
            is_outage = isinstance(error, ModelUnavailable | ModelKeyRejected)
            raise AudioNotTranscribed(str(error), is_outage=is_outage) from error

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        await self._http.close()

    async def _with_retries(self, content: bytes, recording: Recording) -> Transcript:
        fields = {"model": self._model, "response_format": "json"}
        if self._settings.language is not None:
            fields["language"] = self._settings.language
        # the name of the person's file stays here; services go by the extension
        file = (f"recording.{recording.extension}", content, recording.media_type)
        tries = 0
        while True:
            try:
                return _read(await self._http.upload(_PATH, fields, file, _refused))
            except ModelUnavailable as error:
                tries += 1
                if tries > self._policy.retries:
                    raise
                seconds = self._policy.wait(tries, error, random.random())  # noqa: S311 - not for security
                if seconds > self._settings.timeout_seconds:
                    raise
                logger.info("transcription is tried again", extra={"detail": error.detail})
            await asyncio.sleep(seconds)


def _refused(response: ProviderErrorResponse) -> ModelError:
    if response.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return ModelRejected(_TOO_LARGE)
    return error_from_body(_SERVICE, response.status, response.body, response.headers)


def _read(body: bytes) -> Transcript:
    try:
        response = msgspec.json.decode(body, type=_Response)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ModelRejected(_UNREADABLE) from error
    text = response.text.strip()
    if not text:
        raise ModelRejected(_NO_WORDS)
    return Transcript(text, response.duration, response.language or "")

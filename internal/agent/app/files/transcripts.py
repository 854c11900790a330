"""Transcripts: the words of the recordings of one message."""

from internal.agent.domain.errors import AudioNotTranscribed
from internal.agent.ports.audio import AudioReader, Recording, Transcript


class Transcripts:
    """Transcribes each recording of a message once, and none after an outage of the service."""

    def __init__(self, audio: AudioReader) -> None:
        self._audio = audio
        self._known: dict[str, Transcript] = {}
        self._outage: AudioNotTranscribed | None = None

    async def get(self, sha256: str, descriptor: int, recording: Recording) -> Transcript:
        """Return the transcript of an open file, with the length of the file in seconds, if known.

        Raises:
            AudioNotTranscribed: there is none.
            OSError: the file cannot be read.
        """
        if sha256 not in self._known:
            if self._outage is not None:
                raise self._outage
            try:
                transcript = await self._audio.transcribe(descriptor, recording)
            except AudioNotTranscribed as error:
                self._outage = error if error.is_outage else None
                raise
            seconds = transcript.seconds if recording.seconds is None else recording.seconds
            self._known[sha256] = transcript._replace(seconds=seconds)
        return self._known[sha256]

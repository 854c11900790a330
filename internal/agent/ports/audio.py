"""Recordings of speech, and their transcription."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Recording(NamedTuple):
    """Type of a file with sound, by its content; `seconds` is None if its length is unknown.

    `extension` is the usual one of the media type, without a dot.
    """

    media_type: str
    extension: str
    seconds: float | None = None


class Transcript(NamedTuple):
    """The words of a recording; `language` is "" if the service does not name it."""

    text: str
    seconds: float | None = None
    language: str = ""


class UnheardNotice(NamedTuple):
    """Notice for a person whose recordings cannot be transcribed, in that person's language.

    `is_answer`: the message has no words, so that the notice is the only possible answer.
    """

    text: str
    is_answer: bool


class AudioReader(Protocol):
    """Recognises recordings and transcribes them with a remote service, if one is configured.

    A file is given as the descriptor of an open regular file, which stays open and whose position
    does not change.
    """

    @property
    def can_transcribe(self) -> bool:
        """Whether a service is configured."""
        ...

    def inspect(self, descriptor: int, media_type: str, /) -> Recording | None:
        """Return the type of a recording, None if it is none. Reads at most a few hundred KB.

        A file without a known signature is a recording if `media_type` is an audio type.

        Raises:
            OSError: it cannot be read.
        """
        ...

    async def transcribe(self, descriptor: int, recording: Recording, /) -> Transcript:
        """Return the words of a recording.

        Raises:
            AudioNotTranscribed: there are none; the message has the reason.
            OSError: the file cannot be read.
        """
        ...

    def unheard_notice(self, instruction: str, earlier: Sequence[str], /) -> UnheardNotice:
        """Return the notice for a person while no transcription service is configured.

        `earlier` are earlier messages of the session, the newest first.
        """
        ...

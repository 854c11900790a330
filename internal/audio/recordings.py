"""Recognition of recordings: by their content, then by their media type."""

import mimetypes
import os

from internal.agent.ports.audio import Recording
from internal.audio.durations import mp3_seconds, ogg_seconds, wav_seconds
from internal.audio.mp3_frames import parse_frame

_HEAD_BYTES = 8_192
_OGG_CODECS = (b"OpusHead", b"\x01vorbis", b"Speex   ", b"\x7fFLAC")
_OGG_CODEC_BYTES = 128  # the first page has the header of one codec
_SIGNATURES = (
    (0, b"fLaC", Recording("audio/flac", "flac")),
    (0, b"#!AMR", Recording("audio/amr", "amr")),
    (4, b"ftypM4A ", Recording("audio/mp4", "m4a")),
    (4, b"ftypM4B ", Recording("audio/mp4", "m4a")),
)
_WEBM = b"\x1a\x45\xdf\xa3"
_MAX_ID3_VERSION = 4
_EXTENSIONS = {"audio/mp4": "m4a", "audio/webm": "webm", "audio/ogg": "ogg", "audio/mpeg": "mp3"}
_MAX_EXTENSION_CHARACTERS = 5


def inspect_recording(descriptor: int, media_type: str) -> Recording | None:
    """Return a description of a recording, None if the file is none; see `AudioReader.inspect`."""
    head, size = os.pread(descriptor, _HEAD_BYTES, 0), os.fstat(descriptor).st_size
    if head.startswith(b"OggS"):
        is_audio = any(codec in head[:_OGG_CODEC_BYTES] for codec in _OGG_CODECS)
        return Recording("audio/ogg", "ogg", ogg_seconds(descriptor, size)) if is_audio else None
    if head.startswith(b"RIFF") and head[8:12] == b"WAVE":
        return Recording("audio/wav", "wav", wav_seconds(descriptor, size))
    if _is_mp3(head):
        return Recording("audio/mpeg", "mp3", mp3_seconds(descriptor, size))
    for start, signature, recording in _SIGNATURES:
        if head.startswith(signature, start):
            return recording
    return _by_type(head, media_type.partition(";")[0].strip().lower())


def _is_mp3(head: bytes) -> bool:
    """Return True for an ID3 tag, or two frames; one alone occurs in other files as well."""
    if head.startswith(b"ID3") and len(head) > len(b"ID3"):
        return head[3] <= _MAX_ID3_VERSION
    frame = parse_frame(head[:4])
    return frame is not None and parse_frame(head[frame.size : frame.size + 4]) is not None


def _by_type(head: bytes, media_type: str) -> Recording | None:
    if not media_type.startswith("audio/"):
        return None
    if head[4:8] == b"ftyp":
        media_type = "audio/mp4"
    elif head.startswith(_WEBM):
        media_type = "audio/webm"
    extension = _EXTENSIONS.get(media_type) or (mimetypes.guess_extension(media_type) or "")[1:]
    if not extension:
        name = media_type.removeprefix("audio/").removeprefix("x-")
        extension = name if name.isalnum() and len(name) <= _MAX_EXTENSION_CHARACTERS else "bin"
    return Recording(media_type, extension)

"""Artifacts: the files that runs made for people, their types and the names that people see."""

import hashlib
import mimetypes
import posixpath
from functools import cache
from typing import Literal, NamedTuple
from urllib.parse import quote

import msgspec

from internal.agent.domain.ids import ArtifactId, RunId, SessionId, TaskId
from internal.agent.domain.tasks import Attachment
from internal.agent.domain.text import is_invisible

ArtifactType = Literal[
    "image", "document", "table", "text", "code", "archive", "audio", "video", "other"
]

WORKTREE = "worktree"
"""The maker of the diffs of worktrees, which no tool has."""
MODEL = "model"
"""The maker of the pictures in replies."""
UNKNOWN_MEDIA_TYPE = "application/octet-stream"
MAX_NAME_BYTES = 255
MAX_CAPTION_CHARACTERS = 300
_MAX_EXTENSION_BYTES = 20


class Artifact(msgspec.Struct, frozen=True):
    """A version of a file that a run made, with the call and the tool (`maker`) that made it.

    `name` is the path in the folder of files for people, cleaned for display. Versions of one name
    in a session count from 1 and differ in their bytes. `created` is RFC 3339.
    """

    id: ArtifactId
    session_id: SessionId
    task_id: TaskId
    run_id: RunId
    call_id: str
    maker: str
    name: str
    version: int
    type: ArtifactType
    media_type: str
    sha256: str
    size: int
    uri: str
    created: str
    caption: str = ""
    favourite: bool = False

    @property
    def attachment(self) -> Attachment:
        """The stored file."""
        return Attachment(self.name, self.media_type, self.uri, self.sha256, self.size)


class ArtifactFilter(NamedTuple):
    """Which artifacts a list contains. `text` is part of the name or the caption, in any case.

    `versions`: including the versions of a name that a newer one replaced.
    """

    session_id: SessionId | None = None
    task_id: TaskId | None = None
    type: ArtifactType | None = None
    text: str = ""
    favourite: bool = False
    versions: bool = False


class ManifestEntry(msgspec.Struct, frozen=True):
    """An artifact in `workflow.artifact.manifest`."""

    artifact_id: ArtifactId
    name: str
    version: int
    type: ArtifactType
    media_type: str
    sha256: str
    size: int
    uri: str
    caption: str = ""


def names_file(text: str, path: str) -> bool:
    """Return True if a text contains the name of a file, unchanged or in the form of an address."""
    name = posixpath.basename(path)
    return name in text or quote(name) in text


def manifest_entry(artifact: Artifact) -> ManifestEntry:
    """Return an artifact as its event shows it."""
    return ManifestEntry(
        artifact.id,
        artifact.name,
        artifact.version,
        artifact.type,
        artifact.media_type,
        artifact.sha256,
        artifact.size,
        artifact.uri,
        artifact.caption,
    )


_WORD = "application/vnd.openxmlformats-officedocument."
_OPEN = "application/vnd.oasis.opendocument."
_CODE_EXTENSIONS = (
    ".bat", ".c", ".cc", ".cfg", ".clj", ".conf", ".cpp", ".cs", ".dart", ".diff", ".env", ".ex",
    ".go", ".h", ".hpp", ".hs", ".ini", ".java", ".jsx", ".kt", ".lua", ".patch", ".php", ".pl",
    ".proto", ".ps1", ".r", ".rb", ".rs", ".scala", ".swift", ".tex", ".ts", ".tsx", ".vue", ".zig",
)  # fmt: skip
_MEDIA_TYPES: dict[str, tuple[ArtifactType, str]] = {
    ".avif": ("image", "image/avif"),
    ".heic": ("image", "image/heic"),
    ".webp": ("image", "image/webp"),
    ".pdf": ("document", "application/pdf"),
    ".doc": ("document", "application/msword"),
    ".docx": ("document", f"{_WORD}wordprocessingml.document"),
    ".odt": ("document", f"{_OPEN}text"),
    ".ppt": ("document", "application/vnd.ms-powerpoint"),
    ".pptx": ("document", f"{_WORD}presentationml.presentation"),
    ".odp": ("document", f"{_OPEN}presentation"),
    ".epub": ("document", "application/epub+zip"),
    ".rtf": ("document", "application/rtf"),
    ".csv": ("table", "text/csv"),
    ".tsv": ("table", "text/tab-separated-values"),
    ".xls": ("table", "application/vnd.ms-excel"),
    ".xlsx": ("table", f"{_WORD}spreadsheetml.sheet"),
    ".ods": ("table", f"{_OPEN}spreadsheet"),
    ".parquet": ("table", "application/vnd.apache.parquet"),
    ".txt": ("text", "text/plain"),
    ".log": ("text", "text/plain"),
    ".md": ("text", "text/markdown"),
    ".markdown": ("text", "text/markdown"),
    ".rst": ("text", "text/x-rst"),
    ".html": ("code", "text/html"),
    ".htm": ("code", "text/html"),
    ".json": ("code", "application/json"),
    ".jsonl": ("code", "application/jsonl"),
    ".yaml": ("code", "application/yaml"),
    ".yml": ("code", "application/yaml"),
    ".toml": ("code", "application/toml"),
    ".xml": ("code", "application/xml"),
    ".ipynb": ("code", "application/x-ipynb+json"),
    ".sql": ("code", "application/sql"),
    ".js": ("code", "text/javascript"),
    ".mjs": ("code", "text/javascript"),
    ".css": ("code", "text/css"),
    ".py": ("code", "text/x-python"),
    ".sh": ("code", "application/x-sh"),
    **dict.fromkeys(_CODE_EXTENSIONS, ("code", "text/plain")),
    ".7z": ("archive", "application/x-7z-compressed"),
    ".bz2": ("archive", "application/x-bzip2"),
    ".gz": ("archive", "application/gzip"),
    ".rar": ("archive", "application/vnd.rar"),
    ".tar": ("archive", "application/x-tar"),
    ".tgz": ("archive", "application/gzip"),
    ".xz": ("archive", "application/x-xz"),
    ".zip": ("archive", "application/zip"),
    ".zst": ("archive", "application/zstd"),
    ".flac": ("audio", "audio/flac"),
    ".m4a": ("audio", "audio/mp4"),
    ".ogg": ("audio", "audio/ogg"),
    ".opus": ("audio", "audio/ogg"),
    ".mkv": ("video", "video/x-matroska"),
}
"""By extension. The same on every machine, unlike the tables of the system."""
_MAIN_TYPES: dict[str, ArtifactType] = {
    "image": "image",
    "audio": "audio",
    "video": "video",
    "text": "text",
}
_PICTURE_STARTS: dict[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
    "image/bmp": (b"BM",),
}


def media_type_of(name: str, head: bytes) -> str:
    """Return the media type of a file by its extension and its first bytes.

    A picture extension without the matching first bytes gives the unknown type. A file without a
    known extension is plain text if its first bytes are.
    """
    media_type = _known_type(name)[1]
    starts = _PICTURE_STARTS.get(media_type)
    if starts is not None and not head.startswith(starts):
        return UNKNOWN_MEDIA_TYPE
    return media_type or ("text/plain" if _is_text(head) else UNKNOWN_MEDIA_TYPE)


def artifact_type(name: str, media_type: str) -> ArtifactType:
    """Return the type of a file with a name and the media type that `media_type_of` returned."""
    kind, known = _known_type(name)
    if media_type == known:
        return kind
    return _MAIN_TYPES.get(media_type.partition("/")[0], "other")


def _known_type(name: str) -> tuple[ArtifactType, str]:
    """Return the types that the extension of a file stands for, "" for an unknown media type."""
    extension = posixpath.splitext(name)[1].lower()
    if known := _MEDIA_TYPES.get(extension):
        return known
    media_type = _standard_types().guess_type(f"file{extension}")[0] or ""
    return _MAIN_TYPES.get(media_type.partition("/")[0], "other"), media_type


@cache
def _standard_types() -> mimetypes.MimeTypes:
    """Return Python's built-in table, without the system's, which takes 5 ms to read."""
    return mimetypes.MimeTypes(filenames=())


def _is_text(head: bytes) -> bool:
    if not head or b"\0" in head:
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"  # a character was cut
    return True


def display_name(path: str) -> str:
    """Return the path of a file for display, in at most `MAX_NAME_BYTES` bytes.

    Invisible characters, including those that change the direction of text, become `_`; the middle
    of a name that is too long is left out. Different paths have different names: a changed name
    ends in part of the hash of the path, before its extension.
    """
    name = "".join("_" if is_invisible(char) and char != " " else char for char in path)
    if name == path and len(name.encode()) <= MAX_NAME_BYTES and name == name.strip():
        return name
    digest = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    stem, extension = posixpath.splitext(name.strip())
    if len(extension.encode()) > _MAX_EXTENSION_BYTES:
        stem, extension = stem + extension, ""
    room = MAX_NAME_BYTES - len(f"~{digest}{extension}".encode())
    return f"{stem.encode()[:room].decode(errors='ignore')}~{digest}{extension}"


def display_caption(text: str) -> str:
    """Return a caption on one line without invisible characters."""
    clean = "".join(char for char in text if char.isspace() or not is_invisible(char))
    return " ".join(clean.split())[:MAX_CAPTION_CHARACTERS]

"""Routes for artifacts: the files that runs made for people."""

from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response, StreamingResponse

from internal.agent.app.files.archive import zip_artifacts
from internal.agent.domain.artifacts import (
    MAX_CAPTION_CHARACTERS,
    Artifact,
    ArtifactFilter,
    ArtifactType,
)
from internal.agent.domain.ids import ArtifactId, RunId, SessionId, TaskId
from internal.channels.web.downloads import (
    Download,
    content_disposition,
    file_response,
    page_response,
)
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.schemas import EmptyRequest, Id, Limit, RequestModel

_FRAMED = "frame-ancestors 'self'"
_SANDBOX = f"sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; {_FRAMED}"
"""A document of a foreign origin, without scripts, that loads nothing."""
_SHOWN_AS_THEY_ARE = ("image/", "audio/", "video/", "application/pdf", "text/html")
_SHOWN_AS_TEXT: frozenset[ArtifactType] = frozenset({"code", "table", "text"})
_BINARY_TABLES = "application/vnd."


class ArtifactView(msgspec.Struct, frozen=True):
    """A version of a file that a run made; `source_tool` is "" for one found at its end."""

    artifact_id: ArtifactId
    session_id: SessionId
    task_id: TaskId
    run_id: RunId
    call_id: str
    source_tool: str
    name: str
    version: int
    type: ArtifactType
    media_type: str
    sha256: str
    size: int
    uri: str
    caption: str
    favourite: bool
    created: str


class ArtifactsPage(msgspec.Struct, frozen=True):
    """Artifacts, newest first. `next_cursor` is null on the last page."""

    artifacts: list[ArtifactView]
    next_cursor: str | None


class ArtifactsQuery(RequestModel, frozen=True):
    """Filters and page of a list of artifacts. `cursor` is `next_cursor` of the previous page.

    `q` is a part of the name or the caption. Only the newest version of each file is returned
    unless `versions` is `all`.
    """

    session_id: Id | UnsetType = UNSET
    task_id: Id | UnsetType = UNSET
    type: ArtifactType | UnsetType = UNSET
    q: Annotated[str, Meta(max_length=200)] = ""
    favourite: Literal["true", "false"] = "false"
    versions: Literal["newest", "all"] = "newest"
    limit: Limit = 50
    cursor: Id | UnsetType = UNSET


class ContentQuery(RequestModel, frozen=True):
    """Whether a browser shows the file, if that is safe, instead of storing it."""

    inline: Literal["true", "false"] = "false"


class UpdateArtifactRequest(RequestModel, frozen=True):
    """A new caption, and whether the artifact is a favourite. Missing fields do not change."""

    favourite: bool | UnsetType = UNSET
    caption: Annotated[str, Meta(max_length=MAX_CAPTION_CHARACTERS)] | UnsetType = UNSET


async def list_artifacts(request: ApiRequest[ArtifactsQuery, EmptyRequest]) -> ArtifactsPage:
    """List artifacts, newest first."""
    query = request.query
    wanted = ArtifactFilter(
        session_id=SessionId(query.session_id) if query.session_id else None,
        task_id=TaskId(query.task_id) if query.task_id else None,
        type=query.type or None,
        text=query.q,
        favourite=query.favourite == "true",
        versions=query.versions == "all",
    )
    found = await request.services.gateway.queries.artifacts(
        request.principal, wanted, before=query.cursor or None, limit=query.limit + 1
    )
    page = [artifact_view(artifact) for artifact in found[: query.limit]]
    return ArtifactsPage(page, page[-1].artifact_id if len(found) > query.limit else None)


async def show_artifact(request: ApiRequest[EmptyRequest, EmptyRequest]) -> ArtifactView:
    """Return an artifact."""
    return artifact_view(await _find(request))


async def change_artifact(
    request: ApiRequest[EmptyRequest, UpdateArtifactRequest],
) -> ArtifactView:
    """Change the caption of an artifact, and whether it is a favourite."""
    body = request.body
    changed = await request.services.gateway.change_artifact(
        ArtifactId(request.path["artifact_id"]),
        request.principal,
        favourite=None if body.favourite is UNSET else body.favourite,
        caption=None if body.caption is UNSET else body.caption,
    )
    return artifact_view(changed)


async def download_artifact(request: ApiRequest[ContentQuery, EmptyRequest]) -> Response:
    """Return the content of an artifact, or a part of it.

    Shown in a browser it is a document of a foreign origin that runs no script and loads nothing.
    """
    artifact = await _find(request)
    shown_as = _shown_media_type(artifact) if request.query.inline == "true" else ""
    file = Download(
        name=artifact.name,
        media_type=shown_as or artifact.media_type,
        size=artifact.size,
        etag=artifact.sha256,
        content=partial(request.services.gateway.files.stream, artifact.sha256),
        inline=bool(shown_as),
        headers={"content-security-policy": _SANDBOX},
    )
    return await file_response(request.context, file)


async def show_page(request: ApiRequest[EmptyRequest, EmptyRequest]) -> Response:
    """Return a page of a PDF as a picture. `Larkspur-Pages` is the number of pages."""
    return await page_response(request, (await _find(request)).sha256)


async def download_session_files(request: ApiRequest[EmptyRequest, EmptyRequest]) -> Response:
    """Return the newest artifacts of a session as a ZIP archive."""
    session_id, gateway = SessionId(request.path["session_id"]), request.services.gateway
    session, artifacts = await gateway.queries.session_artifacts(session_id, request.principal)
    name = f"{session.title.replace('/', ' ') or 'files'}.zip"
    headers = {"content-disposition": content_disposition(name)}
    if request.context.method == "HEAD":
        return Response(None, 200, headers, "application/zip")
    content = zip_artifacts(artifacts, gateway.files.stream)
    return StreamingResponse(content, 200, headers, "application/zip")


async def _find(request: ApiRequest[Any, EmptyRequest]) -> Artifact:
    artifact_id = ArtifactId(request.path["artifact_id"])
    return await request.services.gateway.queries.artifact(artifact_id, request.principal)


def _shown_media_type(artifact: Artifact) -> str:
    """Return the media type with which a browser shows an artifact, "" if it must not."""
    media_type = artifact.media_type
    if media_type.startswith(_SHOWN_AS_THEY_ARE):
        return media_type
    if artifact.type in _SHOWN_AS_TEXT and not media_type.startswith(_BINARY_TABLES):
        return "text/plain"  # Starlette adds the character set
    return ""


def artifact_view(artifact: Artifact) -> ArtifactView:
    """Return the view of an artifact."""
    return ArtifactView(
        artifact_id=artifact.id,
        session_id=artifact.session_id,
        task_id=artifact.task_id,
        run_id=artifact.run_id,
        call_id=artifact.call_id,
        source_tool=artifact.maker,
        name=artifact.name,
        version=artifact.version,
        type=artifact.type,
        media_type=artifact.media_type,
        sha256=artifact.sha256,
        size=artifact.size,
        uri=artifact.uri,
        caption=artifact.caption,
        favourite=artifact.favourite,
        created=artifact.created,
    )

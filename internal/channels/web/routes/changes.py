"""Routes for the files of workspaces: changes by runs, and the current files."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from internal.agent.domain.artifacts import media_type_of
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.workspaces import (
    ChangeDiff,
    FileChange,
    FileChangeKind,
    TreePage,
)
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.schemas import EmptyRequest, Id, RequestModel

MAX_PATH_CHARACTERS = 4_096
_HEADERS = {
    "content-security-policy": "sandbox; default-src 'none'",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}
_HEAD_BYTES = 4_096


class FileChangeView(msgspec.Struct, frozen=True):
    """A file of the workspace that a run made, changed or deleted.

    `path` is from the top of the workspace on, with escapes for what is no text. `size` is that
    after the run, in bytes. `added` and `removed` are lines, null where they are not known.
    """

    change_id: str
    run_id: RunId
    path: str
    kind: FileChangeKind
    size: int
    added: int | None
    removed: int | None
    is_undone: bool


class ChangesView(msgspec.Struct, frozen=True):
    """Changed files in the order of their paths.

    `omitted` counts further changes that are not kept. `is_complete` is false if the workspace was
    too large to look at all of it, or replaced. `total` counts all changes, `changes` are at most
    `limit`.
    """

    changes: list[FileChangeView]
    total: int
    omitted: int
    is_complete: bool


class ChangeDiffView(msgspec.Struct, frozen=True):
    """The difference between a file before and after a run, as a unified diff.

    `note` says why `diff` is empty or cut: `secret` by the name of the file, `binary`, `not_kept`
    because it was too large or no call named it, or `cut`.
    """

    change: FileChangeView
    diff: str
    note: Literal["", "secret", "binary", "not_kept", "cut"]


class ChangesQuery(RequestModel, frozen=True):
    """Selection of changes: of one run, or without a run the newest change of each file."""

    run_id: Id | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=20_000)] = 1_000


class TreeQuery(RequestModel, frozen=True):
    """A folder of the workspace, "" for its top; or with `q` files whose paths contain that."""

    path: Annotated[str, Meta(max_length=MAX_PATH_CHARACTERS)] = ""
    q: Annotated[str, Meta(max_length=200)] = ""


class WorkspaceFileQuery(RequestModel, frozen=True):
    """The path of a file in the workspace."""

    path: Annotated[str, Meta(min_length=1, max_length=MAX_PATH_CHARACTERS)]


async def list_changes(request: ApiRequest[ChangesQuery, EmptyRequest]) -> ChangesView:
    """List the files of the workspace that runs of a session changed."""
    query = request.query
    found = await request.services.gateway.changed_files.of_session(
        _id(request), request.principal, run_id=RunId(query.run_id) if query.run_id else None
    )
    shown = [_view(each) for each in found.changes[: query.limit]]
    return ChangesView(shown, len(found.changes), found.omitted, found.is_complete)


async def show_diff(request: ApiRequest[EmptyRequest, EmptyRequest]) -> ChangeDiffView:
    """Return the difference between a file before and after a run."""
    found: ChangeDiff = await request.services.gateway.changed_files.diff(
        _id(request), request.path["change_id"], request.principal
    )
    return ChangeDiffView(_view(found.change), found.text, found.note)


async def undo_change(request: ApiRequest[EmptyRequest, EmptyRequest]) -> FileChangeView:
    """Give a file the state that it had before a run, unless it changed since."""
    undone = await request.services.gateway.changed_files.undo(
        _id(request), request.path["change_id"], request.principal, request.channel
    )
    return _view(undone)


async def list_workspace(request: ApiRequest[TreeQuery, EmptyRequest]) -> TreePage:
    """List a folder of the workspace, or search its files by name."""
    query = request.query
    return await request.services.gateway.changed_files.entries(
        _id(request), request.principal, path=query.path, text=query.q.strip()
    )


async def read_workspace_file(request: ApiRequest[WorkspaceFileQuery, EmptyRequest]) -> Response:
    """Return the content of a file of the workspace. A browser runs and loads nothing of it."""
    path = request.query.path
    content = await request.services.gateway.changed_files.read(
        _id(request), request.principal, path
    )
    media_type = media_type_of(path, content[:_HEAD_BYTES])
    return Response(content, headers=_HEADERS, media_type=media_type)


def _id(request: ApiRequest[Any, Any]) -> SessionId:
    return SessionId(request.path["session_id"])


def _view(change: FileChange) -> FileChangeView:
    return FileChangeView(
        change_id=change.id,
        run_id=change.run_id,
        path=change.path,
        kind=change.kind,
        size=change.size,
        added=change.added,
        removed=change.removed,
        is_undone=change.is_undone,
    )

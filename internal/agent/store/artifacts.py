"""Artifacts: the files that runs made for people."""

from typing import NamedTuple

import msgspec

from internal.agent.domain.artifacts import Artifact, ArtifactFilter
from internal.agent.domain.ids import ArtifactId, RunId, SessionId, TaskId
from internal.agent.domain.tasks import Task
from internal.agent.store.database import Read, Row, Statement, Write
from internal.agent.store.encoding import storable

_FIRST_CURSOR = ("9999", "")  # sorts after every (timestamp, id)
_FIELDS = len(Artifact.__struct_fields__)


class SourcedArtifact(NamedTuple):
    """An artifact, and the identity of the file that was stored, "" if it is not known."""

    artifact: Artifact
    source: str


class OwnedArtifact(NamedTuple):
    """An artifact, and the principal whose task made it."""

    artifact: Artifact
    principal: str


class ArtifactStore:
    """Artifacts. The newest version of a name has the mark of its predecessor as a favourite."""

    def add(self, artifact: Artifact, task: Task, source: str = "", /) -> Write[bool]:
        """Insert an artifact of a task as the newest version of its name.

        False if the newest version has the same bytes; nothing is inserted then.
        """
        key = artifact.session_id, storable(artifact.name)
        rows = yield Statement("newest_artifact", key)
        sha256, version, favourite = rows[0] if rows else ("", 0, 0)
        if sha256 == artifact.sha256:
            return False
        yield Statement("retire_artifact", key)
        yield Statement(
            "insert_artifact",
            (
                artifact.id,
                artifact.session_id,
                artifact.task_id,
                artifact.run_id,
                artifact.call_id,
                task.team_id,
                task.origin.principal,
                artifact.maker,
                artifact.type,
                version + 1,
                artifact.media_type,
                artifact.sha256,
                artifact.size,
                artifact.uri,
                artifact.created,
                favourite,
                source,
                storable(artifact.name),
                storable(artifact.caption),
                _searched(artifact.name, artifact.caption),
            ),
        )
        return True

    def get(self, artifact_id: ArtifactId, /) -> Read[OwnedArtifact | None]:
        """Return an artifact and whose it is."""
        rows = yield Statement("artifact", (artifact_id,))
        return OwnedArtifact(_artifact(rows[0]), rows[0][-1]) if rows else None

    def list_page(
        self, wanted: ArtifactFilter, principal: str | None, *, before: str | None, limit: int
    ) -> Read[list[Artifact]]:
        """Return artifacts, newest first.

        Args:
            wanted: the filter.
            principal: the principal whose tasks made them; None for all principals.
            before: return the artifacts after this id in the order. None is returned when the id is
                unknown or belongs to another principal.
            limit: the maximum number of artifacts.
        """
        cursor: Row = _FIRST_CURSOR
        if before is not None:
            rows = yield Statement("artifact_cursor", (before, principal))
            if not rows:
                return []
            cursor = rows[0]
        newest = int(not wanted.versions)
        pattern = f"%{_escaped(storable(wanted.text).lower())}%"
        values = (*cursor, newest, wanted.type, int(wanted.favourite), pattern, limit)
        if wanted.session_id is not None:
            scope = (wanted.session_id, principal, wanted.task_id)
            rows = yield Statement("artifacts_page_of_session", (*values, *scope))
        elif wanted.task_id is not None:
            of_task = (*values, wanted.task_id, principal)
            rows = yield Statement("artifacts_page_of_task", of_task)
        elif principal is not None:
            rows = yield Statement("artifacts_page_of_principal", (*values, principal))
        elif wanted.favourite:
            of_favourites = (*cursor, newest, wanted.type, pattern, limit)
            rows = yield Statement("favourite_artifacts", of_favourites)
        elif wanted.type is not None and not wanted.text:
            of_type = (*cursor, newest, wanted.type, limit)
            rows = yield Statement("artifacts_page_of_type", of_type)
        else:
            rows = yield Statement("artifacts_page", values)
        return [_artifact(row) for row in rows]

    def list_newest(self, session_id: SessionId, /) -> Read[list[SourcedArtifact]]:
        """Return the newest version of every name in a session, oldest first."""
        rows = yield Statement("newest_artifacts", (session_id,))
        return [SourcedArtifact(_artifact(row), row[-1]) for row in rows]

    def share(self, artifact_id: ArtifactId, run_id: RunId, /) -> Write[None]:
        """Store that a run shared an artifact of an earlier run again."""
        yield Statement("share_artifact", (artifact_id, run_id))

    def set_source(self, artifact_id: ArtifactId, source: str, /) -> Write[None]:
        """Store another identity of the file of an artifact: it was touched, not changed."""
        yield Statement("set_artifact_source", (artifact_id, source))

    def list_of_run(self, run_id: RunId, /) -> Read[list[Artifact]]:
        """Return the last version of every name that a run made or shared, oldest first."""
        rows = yield Statement("artifacts_of_run", (run_id,))
        return [_artifact(row) for row in rows]

    def list_of_tree(self, root_task_id: TaskId, /) -> Read[list[Artifact]]:
        """Return all versions that a task and the subtasks below it made, oldest first."""
        rows = yield Statement("artifacts_of_tree", (root_task_id,))
        return [_artifact(row) for row in rows]

    def change(self, artifact: Artifact, /) -> Write[bool]:
        """Store whether an artifact is a favourite, and its caption. False if it is gone."""
        values = (
            artifact.id,
            int(artifact.favourite),
            storable(artifact.caption),
            _searched(artifact.name, artifact.caption),
        )
        rows = yield Statement("change_artifact", values)
        return bool(rows)


def _artifact(row: Row) -> Artifact:
    return msgspec.structs.replace(Artifact(*row[:_FIELDS]), favourite=bool(row[_FIELDS - 1]))


def _searched(name: str, caption: str) -> str:
    return storable(f"{name}\n{caption}").lower()


def _escaped(text: str) -> str:
    """Return a text for the inside of a `like` pattern."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")

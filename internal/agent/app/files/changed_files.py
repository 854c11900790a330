"""The files of a workspace that runs make, change and delete: recorded by runs, read by people."""

import asyncio
import logging
import os
from collections.abc import Sequence
from functools import partial

import msgspec

from internal.agent.app.background_task import run_to_completion
from internal.agent.app.queries import Queries
from internal.agent.app.runs.context import RunContext, WorkspaceResolver
from internal.agent.domain.errors import Forbidden, NotFound, StoreUnavailable
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.events.types import ChangedFile, FilesChanged
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.messages import ToolCall
from internal.agent.domain.permissions.paths import normalize_path
from internal.agent.domain.permissions.targets import PathTarget
from internal.agent.domain.principals import AuditEntry, Principal
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.tasks import ENDED, Channel, Task, TaskFilter
from internal.agent.domain.text import truncate
from internal.agent.ports.attachments import FileFolderResolver
from internal.agent.ports.runtime import Clock
from internal.agent.ports.workspaces import (
    ChangeDiff,
    FileChange,
    FileChanges,
    TreePage,
    WorkspaceChanges,
    WorkspaceTree,
)
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores

MAX_NAMED_FILES = 100
"""Files that the event of a run names; the others are counted."""
_MAX_NAME_CHARACTERS = 200

logger = logging.getLogger(__name__)


class ChangeRecorder:
    """Records the changes of a run in its workspace. A failure is logged: the run goes on.

    A run without calls that may change files reads no folder.
    """

    def __init__(
        self,
        database: Database,
        stores: Stores,
        changes: WorkspaceChanges,
        *,
        folders: FileFolderResolver,
    ) -> None:
        self._database = database
        self._stores = stores
        self._changes = changes
        self._folders = folders

    async def begin(
        self, context: RunContext, config: RunConfig, calls: Sequence[ToolCall]
    ) -> None:
        """Take the state of the workspace before calls that may change files.

        Before calls that change only the files which they name, no other file is read.
        """
        known = context.files
        changing = [call for call in calls if _may_change(config, call.name)]
        if known.keeps_all or not changing:
            return
        named = _named_files(config, changing)
        known.keeps_all = named is None
        if named is not None and named <= known.kept:
            return
        known.kept |= named or frozenset()
        ids, workspace = context.ids, config.workspace
        try:
            running = await asyncio.to_thread(self._changes.open_runs, workspace)
            ended = {each for each in running if await self._has_ended(RunId(each))}
            await run_to_completion(
                partial(
                    self._changes.begin,
                    workspace,
                    ids.run_id,
                    ids.session_id,
                    named=named,
                    skipped=self._skipped(ids.session_id, workspace),
                    has_ended=ended.__contains__,
                )
            )
        except StoreUnavailable as error:
            fields = {"run_id": ids.run_id, "reason": str(error)}
            logger.warning("changes of a workspace not recorded", extra=fields)

    async def record(self, context: RunContext, workspace: str) -> tuple[FilesChanged, ...]:
        """Return the event of the files that a run changed so far; none if it changed none."""
        ids = context.ids
        is_watched = context.files.keeps_all or context.files.kept
        if not workspace or not (is_watched or context.run.attempt > 1):
            return ()
        try:
            skipped = self._skipped(ids.session_id, workspace)
            found = await run_to_completion(
                partial(self._changes.record, workspace, ids.run_id, skipped=skipped)
            )
        except StoreUnavailable as error:
            fields = {"run_id": ids.run_id, "reason": str(error)}
            logger.warning("changes of a workspace not recorded", extra=fields)
            return ()
        context.files.keeps_all = False  # after a pause it begins anew
        context.files.kept.clear()
        return (_event(found),) if found.changes else ()

    async def _has_ended(self, run_id: RunId) -> bool:
        run = await self._database.read(partial(self._stores.runs.get, run_id), is_short=True)
        return run is None or run.status in ENDED

    def _skipped(self, session_id: SessionId, workspace: str) -> frozenset[str]:
        """Return the session's folders in a workspace of its own: their files are listed anyway."""
        folders, prefix = self._folders(session_id, workspace), f"{workspace}/"
        found = folders[:2] if folders.are_together else ()
        return frozenset(each.removeprefix(prefix) for each in found)


class ChangedFiles:
    """The changed files of runs and the files of workspaces, for people.

    Who may read a session may read its files. Only operators undo changes; this is added to the
    audit log.
    """

    def __init__(
        self,
        database: Database,
        stores: Stores,
        clock: Clock,
        *,
        changes: WorkspaceChanges,
        tree: WorkspaceTree,
        workspaces: WorkspaceResolver,
    ) -> None:
        self._database = database
        self._stores = stores
        self._clock = clock
        self._queries = Queries(database, stores)
        self._changes = changes
        self._tree = tree
        self._workspaces = workspaces

    async def of_session(
        self, session_id: SessionId, principal: Principal, *, run_id: RunId | None = None
    ) -> FileChanges:
        """Return the newest change of each file in a session, or all changes of one of its runs.

        Raises:
            NotFound: the session does not exist or belongs to another person.
            StoreUnavailable: the changes cannot be read.
        """
        await self._queries.session(session_id, principal)
        if run_id is not None:
            return await asyncio.to_thread(self._changes.of_run, session_id, run_id)
        return await asyncio.to_thread(self._changes.of_session, session_id)

    async def diff(self, session_id: SessionId, change_id: str, principal: Principal) -> ChangeDiff:
        """Return the difference between a file before and after a run.

        Raises:
            NotFound: the session or the change does not exist, or belongs to another person.
            StoreUnavailable: it cannot be read.
        """
        await self._queries.session(session_id, principal)
        return await asyncio.to_thread(self._changes.diff, session_id, change_id)

    async def undo(
        self, session_id: SessionId, change_id: str, principal: Principal, via: Channel
    ) -> FileChange:
        """Give a file the state that it had before a run.

        Raises:
            NotFound: the session or the change does not exist, or belongs to another person.
            Forbidden: the principal is not an operator.
            Conflict: the file changed since, or its content before was not kept.
            StoreUnavailable: the file cannot be written.
        """
        await self._queries.session(session_id, principal)
        if not principal.may("operate"):
            raise Forbidden(
                "Only operators may undo the changes of a run.", reason_code="undo_by_operators"
            )
        undone = await run_to_completion(partial(self._changes.undo, session_id, change_id))
        entry = AuditEntry(
            rfc3339(self._clock.now()),
            principal.id,
            via,
            "change.undone",
            session_id,
            truncate(undone.path, _MAX_NAME_CHARACTERS),
        )
        await self._database.write(partial(self._stores.audit.add, entry))
        return undone

    async def entries(
        self, session_id: SessionId, principal: Principal, *, path: str = "", text: str = ""
    ) -> TreePage:
        """Return the entries of a folder of the workspace, or the files whose paths contain a text.

        Raises:
            NotFound: the session, its workspace or the folder does not exist.
        """
        root = await self._workspace(session_id, principal)
        if text:
            return await asyncio.to_thread(self._tree.search, root, text)
        return await asyncio.to_thread(self._tree.entries, root, path)

    async def read(self, session_id: SessionId, principal: Principal, path: str) -> bytes:
        """Return the content of a file of the workspace.

        Raises:
            NotFound: the session or the file does not exist.
            Conflict: the file is too large, or holds secrets by its name.
        """
        root = await self._workspace(session_id, principal)
        return await asyncio.to_thread(self._tree.read, root, path)

    async def _workspace(self, session_id: SessionId, principal: Principal) -> str:
        """Return the workspace of the newest task of a session."""
        await self._queries.session(session_id, principal)
        wanted = TaskFilter(session_id=session_id)
        found: list[Task] = await self._database.read(
            partial(self._stores.tasks.list_page, None, wanted, before=None, limit=1)
        )
        if not found:
            raise NotFound(
                "This session has no task yet, and no workspace.", reason_code="no_workspace_yet"
            )
        return await run_to_completion(self._workspaces, found[0], "shared")


def _may_change(config: RunConfig, name: str) -> bool:
    """Return whether a call of a tool may change files of this machine."""
    spec = config.tool(name)
    return spec is None or (spec.risk not in {"read", "ui"} and spec.may_use_files)


def _named_files(config: RunConfig, calls: Sequence[ToolCall]) -> frozenset[str] | None:
    """Return the files that calls change, None if they may change others.

    A path that leads through a link is not that of the file that is changed.
    """
    named: set[str] = set()
    for call in calls:
        spec = config.tool(call.name)
        targets = () if spec is None or spec.risk != "write" else spec.targets
        if not targets or not all(isinstance(each, PathTarget) for each in targets):
            return None
        for each in targets:
            path = call.arguments.get(each.argument)
            if not isinstance(path, str):
                return None
            relative = normalize_path(path).removeprefix(f"{config.workspace}/")
            file = f"{config.workspace}/{relative}"
            if os.path.realpath(file) != file:
                return None
            named.add(relative)
    return frozenset(named)


def _event(found: FileChanges) -> FilesChanged:
    counted = [each for each in found.changes if not each.is_undone]
    named = tuple(
        ChangedFile(
            path=truncate(each.path, _MAX_NAME_CHARACTERS),
            kind=each.kind,
            added=msgspec.UNSET if each.added is None else each.added,
            removed=msgspec.UNSET if each.removed is None else each.removed,
        )
        for each in counted[:MAX_NAMED_FILES]
    )
    return FilesChanged(
        files=named, total=len(counted) + found.omitted, is_complete=found.is_complete
    )

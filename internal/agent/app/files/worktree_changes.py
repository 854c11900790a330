"""The changes of subtasks in their worktrees, which a person applies to the creator's folder."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from internal.agent.app.background_task import run_to_completion
from internal.agent.app.files.session_files import SessionFiles
from internal.agent.app.queries import Queries
from internal.agent.app.runs.context import WorkspaceResolver
from internal.agent.domain.artifacts import WORKTREE, Artifact, ArtifactFilter
from internal.agent.domain.errors import Conflict, Forbidden, NotFound
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import TaskId
from internal.agent.domain.principals import AuditEntry, Principal
from internal.agent.domain.tasks import ENDED, Channel, Task
from internal.agent.ports.runtime import Clock
from internal.agent.ports.workspaces import Worktrees
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores

_MAX_ARTIFACTS = 500
_DIFF = b"diff --git "


class AppliedChanges(msgspec.Struct, frozen=True):
    """The folder whose files were changed, and their paths in it."""

    folder: str
    paths: tuple[str, ...]


class WorktreeApplier:
    """Applies the changes of subtasks. Each application is added to the audit log.

    Args:
        database: the database.
        stores: the statements.
        clock: the time.
        files: the stored files.
        worktrees: changes the files of repositories.
        workspaces: returns the folder of the creator of a subtask, and creates it.
        remove_worktree: removes the worktree of a task.
    """

    def __init__(
        self,
        database: Database,
        stores: Stores,
        clock: Clock,
        *,
        files: SessionFiles,
        worktrees: Worktrees,
        workspaces: WorkspaceResolver,
        remove_worktree: Callable[[Task], Awaitable[None]],
    ) -> None:
        self._database = database
        self._stores = stores
        self._clock = clock
        self._queries = Queries(database, stores)
        self._files = files
        self._worktrees = worktrees
        self._workspaces = workspaces
        self._remove_worktree = remove_worktree

    async def apply(self, task_id: TaskId, principal: Principal, via: Channel) -> AppliedChanges:
        """Change the files in the folder of a subtask's creator as the subtask did in its worktree.

        The worktree is removed afterwards, with its branch. All files are changed, or none.

        Raises:
            NotFound: the task does not exist or belongs to another person, or has no changes.
            Forbidden: the principal is not an operator.
            Conflict: the task has not ended, or its changes do not fit.
            InvalidRequest: the creator's folder is no repository any more.
        """
        task, run = await self._queries.task_with_run(task_id, principal)
        if not principal.may("operate"):
            raise Forbidden(
                "Only operators may apply the changes of a task.", reason_code="apply_by_operators"
            )
        if run.status not in ENDED:
            raise Conflict(
                "The task has not ended: its changes are not complete.",
                reason_code="task_not_ended_changes",
            )
        patch = await self._files.get((await self._find_diff(task_id, principal)).sha256)
        if _DIFF not in patch:
            raise Conflict(
                "The diff of this task is missing or was too large; its file says why. If it names"
                " a branch, merge that with git.",
                reason_code="no_diff",
            )
        folder = await asyncio.to_thread(self._workspaces, task, "shared")
        paths = await asyncio.to_thread(self._worktrees.check, folder, patch)
        detail = f"{len(paths)} files in {folder}"
        entry = AuditEntry(
            rfc3339(self._clock.now()), principal.id, via, "task.applied", task_id, detail
        )
        await self._database.write(partial(self._stores.audit.add, entry))
        await run_to_completion(self._worktrees.apply, folder, patch)
        await self._remove_worktree(task)
        return AppliedChanges(folder, paths)

    async def _find_diff(self, task_id: TaskId, principal: Principal) -> Artifact:
        wanted = ArtifactFilter(task_id=task_id, versions=True)
        found = await self._queries.artifacts(principal, wanted, limit=_MAX_ARTIFACTS)
        diff = next((each for each in found if each.maker == WORKTREE), None)
        if diff is None:
            raise NotFound(
                "This task has changed nothing in a worktree.", reason_code="no_worktree_changes"
            )
        return diff

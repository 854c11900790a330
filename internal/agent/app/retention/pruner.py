"""Removes rows and sessions that are older than the settings allow, in small transactions."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Literal, NamedTuple

from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import SessionId
from internal.agent.ports.maintenance.reports import Pruned
from internal.agent.ports.runtime import Clock
from internal.agent.ports.workspaces import EmptyWorkspaces
from internal.agent.store.database import Database
from internal.agent.store.retention.expired_rows import IdleSession, RowKind
from internal.agent.store.stores import Stores

PRUNE_INTERVAL_SECONDS = 86_400.0
"""How often a gateway removes what is old."""

EMPTY_WORKSPACE_DAYS = 1
"""Folders without files are removed after this time, whatever the settings say."""

PrunedKind = Literal[RowKind, "sessions", "one_shot_sessions", "empty_workspaces"]
RemoveSession = Callable[[SessionId, str], Awaitable[bool]]
"""Deletes a session that has been idle since a time, and returns whether it was deleted."""

logger = logging.getLogger(__name__)


class RetentionPolicy(NamedTuple):
    """Retention periods in days; 0: unlimited."""

    events_days: int = 0
    sessions_days: int = 0
    one_shot_days: int = 0
    audit_days: int = 0
    handled_messages_days: int = 0
    usage_days: int = 0


class Pruner:
    """Removes old data. It may run at any time, in several processes at once, and be killed."""

    def __init__(
        self,
        database: Database,
        stores: Stores,
        *,
        clock: Clock,
        policy: RetentionPolicy,
        remove_session: RemoveSession,
        workspaces: EmptyWorkspaces,
    ) -> None:
        self._database = database
        self._store = stores.retention
        self._clock = clock
        self._policy = policy
        self._remove_session = remove_session
        self._workspaces = workspaces

    async def count(self) -> list[Pruned]:
        """Count the items that `prune` would remove now. Changes nothing."""
        return await self._visit(removes=False)

    async def prune(self) -> list[Pruned]:
        """Remove old data and return the removed amounts.

        Raises:
            StoreError: the database cannot be used; earlier removals remain in effect.
        """
        pruned = await self._visit(removes=True)
        removed = {each.kind: each.total for each in pruned if each.total}
        if removed:
            logger.info("old data removed", extra=dict(removed))
        return pruned

    async def _visit(self, *, removes: bool) -> list[Pruned]:
        policy = self._policy
        sessions: tuple[tuple[PrunedKind, int], ...] = (
            ("sessions", policy.sessions_days),
            ("one_shot_sessions", policy.one_shot_days),
        )
        rows: tuple[tuple[RowKind, int], ...] = (
            ("events", policy.events_days),
            ("inbox", policy.handled_messages_days),
            ("outbox", policy.handled_messages_days),
            ("audit_entries", policy.audit_days),
            ("usage", policy.usage_days),
        )
        pruned = []
        for kind, days in sessions:
            if days:
                one_shot = kind == "one_shot_sessions"
                count = await self._visit_sessions(days, one_shot=one_shot, removes=removes)
                pruned.append(Pruned(kind, days, count))
        for table, days in rows:
            if days:
                pruned.append(Pruned(table, days, await self._visit_rows(table, days, removes)))
        if count := await self._visit_workspaces(removes):
            pruned.append(Pruned("empty_workspaces", EMPTY_WORKSPACE_DAYS, count))
        return pruned

    async def _visit_workspaces(self, removes: bool) -> int:
        """Count or remove the folders without files of sessions that are idle.

        A run creates the folder that it needs again.
        """
        before = self._limit(EMPTY_WORKSPACE_DAYS)
        since = (self._clock.now() - timedelta(days=EMPTY_WORKSPACE_DAYS)).timestamp()
        count = 0
        for session_id in await asyncio.to_thread(self._workspaces.list_empty, since):
            is_idle = partial(self._store.is_idle, session_id, before)
            if await self._database.read(is_idle) and (
                not removes or await asyncio.to_thread(self._workspaces.remove_empty, session_id)
            ):
                count += 1
        return count

    async def _visit_rows(self, kind: RowKind, days: int, removes: bool) -> int:
        before, after, count = self._limit(days), 0, 0
        while True:
            page = await self._database.read(partial(self._store.list_page, kind, after, before))
            if removes and page.expired:
                work = partial(self._store.remove_page, kind, after, before)
                page = await self._database.write(work)
            count += len(page.expired)
            if page.last is None or not page.has_old:
                return count
            after = page.last

    async def _visit_sessions(self, days: int, *, one_shot: bool, removes: bool) -> int:
        before, after, count = self._limit(days), IdleSession("", SessionId("")), 0
        list_page = self._store.list_idle_sessions
        while page := await self._database.read(
            partial(list_page, before, after, one_shot=one_shot)
        ):
            for session in page:
                if not removes or await self._remove(session.session_id, before):
                    count += 1
            after = page[-1]
        return count

    async def _remove(self, session_id: SessionId, before: str) -> bool:
        remove = partial(self._store.remove_content, session_id, before)
        while await self._database.write(remove):
            pass
        return await self._remove_session(session_id, before)

    def _limit(self, days: int) -> str:
        return rfc3339(self._clock.now() - timedelta(days=days))

"""Restores the workspaces of sessions from archives, and archives them between runs."""

import asyncio
import logging
import tempfile
from functools import partial
from typing import NamedTuple
from weakref import WeakValueDictionary

from ksuid import Ksuid

from internal.agent.app.background_task import run_to_completion
from internal.agent.app.events.writer import ExtraWork
from internal.agent.app.files.unused_files import wait_for_removal
from internal.agent.app.hosts.host import Host
from internal.agent.domain.errors import (
    FilesUnavailable,
    FileTooLarge,
    LarkspurError,
    NotFound,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.events.types import Notice
from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import Task
from internal.agent.domain.text import format_size, truncate_json
from internal.agent.ports.attachments import Attachments
from internal.agent.ports.commands import BackgroundCommands
from internal.agent.ports.runtime import Clock
from internal.agent.ports.workspaces import NotArchivable, PackedWorkspace, WorkspaceArchives
from internal.agent.store.database import Database, Write
from internal.agent.store.files import WorkspaceArchive
from internal.agent.store.stores import Stores

MAX_ARCHIVE_BYTES = 200 * 1024 * 1024
"""The size of an archive; the workspace of a session with a larger one stays on its host."""
_MAX_NAMED = 5
_MAX_REMEMBERED = 1_000

logger = logging.getLogger(__name__)


def new_version() -> str:
    """Return a version of the archive of a workspace, such as `archive-2ABc…`."""
    return f"archive-{Ksuid()}"


class SavedWorkspace(NamedTuple):
    """The events to store with the end or pause of a run, and the statements with them."""

    events: tuple[Notice, ...] = ()
    also: ExtraWork | None = None


class _Saved(NamedTuple):
    """The newest archive that this process made of a session, and the files it was made of."""

    fingerprint: str
    version: str


class WorkspaceKeeper:
    """Keeps the workspaces of sessions as archives between runs, if the host does so.

    A session is bound to a host from the claim of a run until its workspace is archived, in the
    transaction that ends or pauses the run. If it cannot be archived, the session stays bound.

    Args:
        host: this host.
        archives: packs and unpacks what sessions have on this host.
        attachments: the store of the archives, which all hosts reach.
        commands: the background commands of this process.
    """

    def __init__(
        self,
        host: Host,
        database: Database,
        stores: Stores,
        *,
        clock: Clock,
        archives: WorkspaceArchives,
        attachments: Attachments,
        commands: BackgroundCommands,
    ) -> None:
        self.host = host
        self._database = database
        self._stores = stores
        self._clock = clock
        self._archives = archives
        self._attachments = attachments
        self._commands = commands
        self._locks: WeakValueDictionary[SessionId, asyncio.Lock] = WeakValueDictionary()
        self._saved: dict[SessionId, _Saved] = {}
        self._unsaved: set[SessionId] = set()

    async def restore(self, task: Task) -> None:
        """Restore the files of a task's session from its newest archive, unless they are current.

        Raises:
            StoreUnavailable: this is not possible now.
            LarkspurError: the archive is lost or damaged.
        """
        if not self.host.archives(task):
            return
        session_id = task.session_id
        async with self._lock(session_id):
            archive = await self._database.read(partial(self._stores.hosts.get_archive, session_id))
            if archive is None:
                return
            known = await asyncio.to_thread(self._archives.versions, session_id)
            if archive.version in known:
                return
            try:
                await self._unpack(session_id, archive)
            except FilesUnavailable as error:
                raise StoreUnavailable(f"The files of the session: {error}") from error
            except (NotFound, StoreCorrupt) as error:
                raise LarkspurError(
                    f"The files of this session cannot be restored: {error}."
                ) from error
            self._saved.pop(session_id, None)
            logger.info("workspace restored", extra={"session_id": session_id})

    async def save(self, task: Task) -> SavedWorkspace:
        """Archive the workspace of a task that ends or pauses; see `SavedWorkspace`."""
        if not self.host.archives(task):
            return SavedWorkspace()
        self._unsaved.discard(task.session_id)
        async with self._lock(task.session_id):
            try:
                return await self._save(task.session_id)
            except (NotArchivable, FilesUnavailable, FileTooLarge, StoreError) as error:
                reason = str(error)
                if isinstance(error, FileTooLarge):
                    reason = f"they are larger than {format_size(MAX_ARCHIVE_BYTES)} as an archive"
        sentence = (
            f"The files of this session stay on host {self.host.name}, which executes its next"
            f" tasks: {reason}."
        )
        logger.warning("workspace not archived", extra={"session_id": task.session_id,
                                                        "reason": reason})  # fmt: skip
        return SavedWorkspace((Notice(about="kept_files", text=truncate_json(sentence)),))

    def save_later(self, task: Task) -> None:
        """Let `save_unsaved` archive the workspace of a task that was stopped or failed."""
        if self.host.archives(task):
            self._unsaved.add(task.session_id)

    async def save_unsaved(self) -> None:
        """Archive the workspaces of `save_later`, and let other hosts execute their sessions.

        A failure is logged: the session stays bound to this host until a later run of it ends.

        Raises:
            StoreUnavailable: the database cannot be used.
        """
        while self._unsaved:
            session_id = self._unsaved.pop()
            async with self._lock(session_id):
                try:
                    saved = await self._save(session_id)
                except StoreUnavailable:
                    self._unsaved.add(session_id)
                    raise
                except (NotArchivable, FilesUnavailable, FileTooLarge, StoreError) as error:
                    extra = {"session_id": session_id, "reason": str(error)}
                    logger.warning("workspace not archived", extra=extra)
                    continue
                await self._database.write(partial(self._store_idle, session_id, saved))

    def _lock(self, session_id: SessionId) -> asyncio.Lock:
        lock = self._locks.get(session_id)
        if lock is None:
            lock = self._locks[session_id] = asyncio.Lock()
        return lock

    async def _save(self, session_id: SessionId) -> SavedWorkspace:
        if any(each.ended is None for each in self._commands.of_session(session_id)):
            raise NotArchivable("a background command is running")
        fingerprint = await run_to_completion(self._archives.fingerprint, session_id)
        archive = await self._database.read(partial(self._stores.hosts.get_archive, session_id))
        version = "" if archive is None else archive.version
        if self._saved.get(session_id) == _Saved(fingerprint, version):
            return SavedWorkspace(also=partial(self._release, session_id))
        if not fingerprint and archive is None:  # there is nothing and never was
            return SavedWorkspace(also=partial(self._release, session_id))
        sha256, packed = await self._pack(session_id) if fingerprint else ("", PackedWorkspace(0))
        new = WorkspaceArchive(new_version(), sha256, rfc3339(self._clock.now()))
        # before the transaction: whether or not it succeeds, these files are not replaced
        await run_to_completion(self._archives.add_version, session_id, new.version)
        self._saved[session_id] = _Saved(fingerprint, new.version)
        if len(self._saved) > _MAX_REMEMBERED:
            del self._saved[next(iter(self._saved))]
        events = tuple(_left_out(packed))
        return SavedWorkspace(events, partial(self._store, session_id, new))

    async def _pack(self, session_id: SessionId) -> tuple[str, PackedWorkspace]:
        with tempfile.TemporaryFile(dir=self.host.folder) as file:
            packed = await run_to_completion(self._archives.pack, session_id, file.fileno())

            async def register(sha256: str, size: int) -> None:
                add = partial(self._stores.files.add_archive, session_id, sha256, size)
                await self._database.write(add)
                await wait_for_removal(self._database, self._stores, self._clock, sha256)

            stored = await self._attachments.put_file(
                "workspace.tar.gz",
                "application/gzip",
                file.fileno(),
                max_bytes=MAX_ARCHIVE_BYTES,
                register=register,
            )
        return stored.sha256, packed

    async def _unpack(self, session_id: SessionId, archive: WorkspaceArchive) -> None:
        if not archive.sha256:
            await run_to_completion(self._archives.unpack, session_id, None, archive.version)
            return
        with tempfile.TemporaryFile(dir=self.host.folder) as file:
            await self._attachments.copy_to(archive.sha256, file.fileno())
            await run_to_completion(
                self._archives.unpack, session_id, file.fileno(), archive.version
            )

    def _store(self, session_id: SessionId, archive: WorkspaceArchive) -> Write[list[EventRecord]]:
        yield from self._stores.hosts.save_archive(session_id, archive)
        yield from self._stores.files.replace_archive(session_id, archive.sha256)
        return (yield from self._release(session_id))

    def _release(self, session_id: SessionId) -> Write[list[EventRecord]]:
        yield from self._stores.hosts.release(session_id, self.host.name)
        return []

    def _store_idle(self, session_id: SessionId, saved: SavedWorkspace) -> Write[None]:
        """Store an archive of a session without a run, if it is still on this host."""
        host = yield from self._stores.hosts.get_of_session(session_id)
        runs = yield from self._stores.runs.list_unfinished(session_id)
        is_running = any(run.status == "running" for run in runs)
        if host == self.host.name and not is_running and saved.also is not None:
            yield from saved.also()


def _left_out(packed: PackedWorkspace) -> list[Notice]:
    """Return the event that names the parts left out of an archive, if there are any."""
    if not packed.left_out:
        return []
    named = ", ".join(packed.left_out[:_MAX_NAMED])
    more = len(packed.left_out) - _MAX_NAMED
    rest = f" and {more:,} more" if more > 0 else ""
    sentence = (
        f"Not kept in the archive of the workspace: {named}{rest}. Links that lead outside of it"
        " and special files stay on their host."
    )
    return [Notice(about="kept_files", text=truncate_json(sentence))]

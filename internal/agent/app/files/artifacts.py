"""Artifacts of runs: files that a tool shares, new files in the folder for people, and pictures."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

import msgspec

from internal.agent.app.background_task import run_to_completion
from internal.agent.app.events.writer import ExtraWork, join_work
from internal.agent.app.files.output_folder import (
    MAX_ENTRIES,
    OutputFile,
    OutputFileIgnored,
    OutputScan,
    open_output,
    output_exists,
    scan_output,
)
from internal.agent.app.files.session_files import SessionFiles
from internal.agent.app.runs.context import RunContext
from internal.agent.domain.artifacts import (
    MODEL,
    WORKTREE,
    Artifact,
    artifact_type,
    display_caption,
    display_name,
    manifest_entry,
    media_type_of,
)
from internal.agent.domain.errors import (
    Conflict,
    FilesUnavailable,
    LarkspurError,
    StoreError,
    ToolError,
)
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.events.types import ArtifactManifest
from internal.agent.domain.ids import SessionId, TaskId, new_artifact_id
from internal.agent.domain.messages import ToolCall
from internal.agent.domain.tasks import Attachment, Run
from internal.agent.domain.text import format_size
from internal.agent.ports.attachments import FileFolderResolver
from internal.agent.ports.llm import ReplyPicture
from internal.agent.ports.runtime import Clock
from internal.agent.ports.tools import SharedFiles
from internal.agent.ports.workspaces import WorktreeChanges, Worktrees
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores

logger = logging.getLogger(__name__)

OUTPUT = "output"
"""The name of the folder for people in paths of tools."""
MAX_NEW_FILES = 200
"""New files of the output folder that are taken after a batch of calls; the next takes more."""
MAX_MANIFEST_ENTRIES = 25
"""Artifacts in one event, whose payload may take 64 KB."""
MAX_NAMED_FILES = 10
"""Files that a result names; further ones are counted."""
_HEAD_BYTES = 4_096
CLOCK_TICK_NS = 20_000_000
"""How far the clock of a file system may be behind that of the process."""
_SHORT_ID = 8


class RecordedArtifacts(NamedTuple):
    """New artifacts: their events, the statements stored with them, and a note for the model.

    All are empty if there is nothing new.
    """

    events: tuple[ArtifactManifest, ...] = ()
    also: ExtraWork | None = None
    note: str = ""

    def joined(self, other: "RecordedArtifacts") -> "RecordedArtifacts":
        """Return both as one."""
        note = " ".join(filter(None, (self.note, other.note)))
        return RecordedArtifacts(self.events + other.events, join_work(self.also, other.also), note)


class _Change(NamedTuple):
    """An artifact that was made, or an older one that is shared again or whose file was touched."""

    artifact: Artifact
    source: str = ""
    is_new: bool = True
    is_shared: bool = True


class _NotStored(Exception):
    """A file cannot be stored; the message is the reason. `for_now`: it is tried again."""

    def __init__(self, reason: str, *, for_now: bool = False) -> None:
        super().__init__(reason)
        self.for_now = for_now


class ArtifactRecorder:
    """Makes artifacts of files: stores their bytes, and prepares the rows for the events."""

    def __init__(
        self,
        database: Database,
        stores: Stores,
        files: SessionFiles,
        *,
        clock: Clock,
        folders: FileFolderResolver,
        worktrees: Worktrees,
    ) -> None:
        self._database = database
        self._stores = stores
        self._files = files
        self._clock = clock
        self._folders = folders
        self._worktrees = worktrees

    async def store_file(self, session_id: SessionId, name: str, descriptor: int) -> Attachment:
        """Store an open file of a session; see `StoreFile`."""
        try:
            return await self._store(session_id, name, descriptor)
        except _NotStored as error:
            raise ToolError(f"{name} cannot be stored: {error}") from error

    async def record_shared(
        self, context: RunContext, call: ToolCall, shared: SharedFiles
    ) -> RecordedArtifacts:
        """Make artifacts of files that a call shares; existing artifacts are shared again."""
        caption = display_caption(shared.caption)
        async with context.files.lock:
            await self._load(context)
            changes = [
                self._change(context, call, _shared_name(file.name), file, caption=caption)
                for file in shared.files
            ]
        return self._recorded(context, call, changes, notes=[_shared_note(changes)])

    async def record_output(
        self, context: RunContext, workspace: str, call: ToolCall | None
    ) -> RecordedArtifacts:
        """Make artifacts of the new and changed files in the output folder.

        In a folder of a person only those count that changed since the run began. `call` is the one
        after which they were found, None for the end of a run.
        """
        folders = self._folders(context.ids.session_id, workspace)
        folder = folders.output
        if not output_exists(folder):
            return RecordedArtifacts()
        since_ns = 0 if folders.are_together else _began_ns(context.run)
        async with context.files.lock:
            scan = await asyncio.to_thread(scan_output, folder, since_ns=since_ns)
            known = context.files
            changed = [file for file in scan.files if known.seen.get(file.path) != file.identity]
            if changed:
                await self._load(context)
                changed = [file for file in changed if not _is_recorded(context, file)]
            changes, refused = await self._take(context, call, folder, changed[:MAX_NEW_FILES])
        for path, reason in refused.items():
            fields = {"run_id": context.ids.run_id, "file": path, "reason": reason}
            logger.warning("file not shared", extra=fields)
        omitted = max(0, len(changed) - MAX_NEW_FILES)
        notes = [
            _shared_note([change for change in changes if change.is_shared]),
            _refused_note(context, {**scan.ignored, **refused}),
            _omitted_note(context, scan, omitted),
        ]
        return self._recorded(context, call, changes, notes=notes, omitted=omitted)

    async def record_changes(self, context: RunContext, workspace: str) -> RecordedArtifacts:
        """Commit the changes of a subtask's worktree to a branch, and make an artifact of them.

        The artifact is a diff, or a sentence with the reason if there is none.
        """
        subtask = context.run.subtask
        if subtask is None or subtask.workspace != "worktree":
            return RecordedArtifacts()
        try:
            changes = await run_to_completion(self._worktrees.collect, workspace)
        except Conflict as error:
            content, caption = str(error).encode(), str(error)
        else:
            if changes is None:
                return RecordedArtifacts()
            caption = _changes_caption(changes, context.ids.task_id)
            content = changes.patch or f"{caption}\nThe diff is too large to show.\n".encode()
        name, session_id = f"task-{subtask.number}.diff", context.ids.session_id
        media_type = media_type_of(name, content[:_HEAD_BYTES])
        try:
            stored = await self._files.put(session_id, name, media_type, content)
        except (StoreError, FilesUnavailable):  # the branch is there
            logger.exception("diff cannot be stored", extra={"run_id": context.ids.run_id})
            return RecordedArtifacts()
        async with context.files.lock:
            await self._load(context)
            change = self._change(
                context, None, name, stored, caption=display_caption(caption), maker=WORKTREE
            )
        return self._recorded(context, None, [change], notes=())

    async def record_pictures(
        self, context: RunContext, pictures: Sequence[ReplyPicture]
    ) -> RecordedArtifacts:
        """Make artifacts of the pictures in a reply. The note says which could not be stored."""
        changes: list[_Change] = []
        refused: list[str] = []
        session_id = context.ids.session_id
        for name, media_type, content in map(msgspec.structs.astuple, pictures):
            try:
                pieces = _in_one_piece(content)
                stored = await self._files.put_stream(session_id, name, media_type, pieces)
            except LarkspurError as error:  # such as too many files of the session
                refused.append(f"[{name} is not kept: {error}]")
                continue
            async with context.files.lock:
                await self._load(context)
                changes.append(self._change(context, None, name, stored, maker=MODEL))
        return self._recorded(context, None, changes, notes=refused)

    async def _take(
        self,
        context: RunContext,
        call: ToolCall | None,
        folder: str,
        files: Iterable[OutputFile],
    ) -> tuple[list[_Change], dict[str, str]]:
        """Store files of the output folder; return the changes and the reasons of failures."""
        changes: list[_Change] = []
        refused: dict[str, str] = {}
        for file in files:
            name = display_name(file.path)
            try:
                stored, identity = await self._store_output(context, folder, file)
            except _NotStored as error:
                refused[file.path] = str(error)
                if error.for_now:
                    break  # the others would fail as well
                context.files.seen[file.path] = file.identity
                continue
            context.files.seen[file.path] = identity
            changes.append(self._change(context, call, name, stored, source=identity))
        return changes, refused

    async def _store_output(
        self, context: RunContext, folder: str, file: OutputFile
    ) -> tuple[Attachment, str]:
        """Store a file of the output folder; return it with the identity that it had before."""
        try:
            descriptor, identity = open_output(folder, file.path)
        except OutputFileIgnored as error:
            raise _NotStored(str(error)) from error
        try:
            name = display_name(file.path)
            return await self._store(context.ids.session_id, name, descriptor), identity
        finally:
            os.close(descriptor)

    async def _store(self, session_id: SessionId, name: str, descriptor: int) -> Attachment:
        limit = self._files.max_file_bytes
        if os.fstat(descriptor).st_size > limit:
            raise _NotStored(f"it is larger than {format_size(limit)}")
        try:
            head = await run_to_completion(os.pread, descriptor, _HEAD_BYTES, 0)
            media_type = media_type_of(name, head)
            return await self._files.put_file(session_id, name, media_type, descriptor)
        except OSError as error:
            raise _NotStored(error.strerror or "it cannot be read") from error
        except (StoreError, FilesUnavailable) as error:
            raise _NotStored(str(error), for_now=True) from error
        except LarkspurError as error:  # such as too many files of the session
            raise _NotStored(str(error)) from error

    async def _load(self, context: RunContext) -> None:
        """Read the newest artifacts of the session, once for each attempt of a run."""
        known = context.files
        if known.are_read:
            return
        session_id = context.ids.session_id
        rows = await self._database.read(partial(self._stores.artifacts.list_newest, session_id))
        known.newest = {each.artifact.name: each.artifact for each in rows}
        known.sources = {each.artifact.name: each.source for each in rows}
        known.are_read = True

    def _change(
        self,
        context: RunContext,
        call: ToolCall | None,
        name: str,
        stored: Attachment,
        *,
        caption: str = "",
        source: str = "",
        maker: str = "",
    ) -> _Change:
        """Return the change by a stored file, and remember the file as the newest of its name."""
        known = context.files.newest.get(name)
        if known is not None and known.sha256 == stored.sha256:
            return _Change(known, source, is_new=False, is_shared=not source)
        ids = context.ids
        made = Artifact(
            id=new_artifact_id(),
            session_id=ids.session_id,
            task_id=ids.task_id,
            run_id=ids.run_id,
            call_id="" if call is None else call.call_id,
            maker=maker if call is None else call.name,
            name=name,
            version=1 if known is None else known.version + 1,
            type=artifact_type(name, stored.media_type),
            media_type=stored.media_type,
            sha256=stored.sha256,
            size=stored.size,
            uri=stored.uri,
            created=rfc3339(self._clock.now()),
            caption=caption,
        )
        context.files.newest[name] = made
        return _Change(made, source)

    def _recorded(
        self,
        context: RunContext,
        call: ToolCall | None,
        changes: Sequence[_Change],
        *,
        notes: Iterable[str],
        omitted: int = 0,
    ) -> RecordedArtifacts:
        shown = [manifest_entry(change.artifact) for change in changes if change.is_shared]
        events = tuple(
            ArtifactManifest(
                artifacts=tuple(shown[start : start + MAX_MANIFEST_ENTRIES]),
                call_id="" if call is None else call.call_id,
                source_tool="" if call is None else call.name,
                omitted=omitted if start + MAX_MANIFEST_ENTRIES >= len(shown) else 0,
            )
            for start in range(0, len(shown), MAX_MANIFEST_ENTRIES)
        )
        also = partial(self._write, context, changes) if changes else None
        return RecordedArtifacts(events, also, " ".join(note for note in notes if note))

    def _write(self, context: RunContext, changes: Sequence[_Change]) -> Write[list[EventRecord]]:
        artifacts, task = self._stores.artifacts, context.task
        for artifact, source, is_new, is_shared in changes:
            if is_new:
                yield from artifacts.add(artifact, task, source)
            elif is_shared:
                yield from artifacts.share(artifact.id, context.ids.run_id)
            else:
                yield from artifacts.set_source(artifact.id, source)
        return []


async def _in_one_piece(content: bytes) -> AsyncGenerator[bytes]:
    yield content


def _changes_caption(changes: WorktreeChanges, task_id: TaskId) -> str:
    """Return a line about the changes of a subtask, with the command that applies them."""
    files = "1 file" if len(changes.paths) == 1 else f"{len(changes.paths):,} files"
    left_out = "".join(f" Left out: {each}." for each in changes.left_out)
    return (
        f"{files} changed since commit {changes.base}, on the branch {changes.branch}."
        f" To apply: larkspur tasks apply {task_id[-_SHORT_ID:]}.{left_out}"
    )


def _began_ns(run: Run) -> int:
    """Return when a run began in ns since 1970, as the clocks of file systems show it."""
    began = datetime.fromisoformat(run.started) if run.started else None
    return 0 if began is None else int(began.timestamp() * 1_000_000_000) - CLOCK_TICK_NS


def _shared_name(path: str) -> str:
    """Return the name of a shared file; that of one in the output folder is as when found there."""
    return display_name(path.removeprefix(f"{OUTPUT}/").removeprefix("./"))


def _is_recorded(context: RunContext, file: OutputFile) -> bool:
    """Return True if the newest artifact of the name was made of just this file; remember it."""
    if context.files.sources.get(display_name(file.path)) != file.identity:
        return False
    context.files.seen[file.path] = file.identity
    return True


def _shared_note(changes: Sequence[_Change]) -> str:
    described = [
        f"{each.name} (v{each.version}, {format_size(each.size)})"
        for each in (change.artifact for change in changes)
    ]
    return f"Shared: {_joined(described)}." if described else ""


def _refused_note(context: RunContext, refused: dict[str, str]) -> str:
    """Return the reasons for the files that were left out, each reason of a file only once."""
    news = [
        f"{display_name(path) or OUTPUT} ({reason})"
        for path, reason in sorted(refused.items())
        if f"{path}:{reason}" not in context.files.told
    ]
    context.files.told.update(f"{path}:{reason}" for path, reason in refused.items())
    return f"Not shared: {_joined(news)}." if news else ""


def _omitted_note(context: RunContext, scan: OutputScan, omitted: int) -> str:
    if omitted:
        return (
            f"{omitted:,} more new files in {OUTPUT}/ are not shared yet: put them into an archive."
        )
    if not scan.is_complete and OUTPUT not in context.files.told:
        context.files.told.add(OUTPUT)
        return f"{OUTPUT}/ has more than {MAX_ENTRIES:,} files: not all were looked at."
    return ""


def _joined(items: Sequence[str]) -> str:
    more = len(items) - MAX_NAMED_FILES
    return ", ".join(items[:MAX_NAMED_FILES]) + (f" and {more:,} more" if more > 0 else "")

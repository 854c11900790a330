"""The locations of files: the store of attachments, and the files that hosts share."""

import asyncio
import hashlib
import hmac
import io
import re
import secrets
import socket
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from internal.agent.app.background_task import background_task
from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.files.changed_files import ChangedFiles
from internal.agent.app.files.session_files import SessionFiles
from internal.agent.app.files.worktree_changes import WorktreeApplier
from internal.agent.app.hosts.absence import HostAbsence
from internal.agent.app.hosts.host import ONLY_HOST, Host
from internal.agent.app.hosts.shared_storage import SharedStorage, StoragePart, register_host
from internal.agent.app.hosts.workspace_keeper import WorkspaceKeeper
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.errors import LarkspurError
from internal.agent.ports.attachments import Attachments
from internal.agent.ports.runtime import Clock
from internal.agent.ports.workspaces import WorkspaceChanges
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.attachments.local import LocalAttachments
from internal.attachments.marker import MARKER_FILE, find_marker, new_marker
from internal.attachments.s3 import S3Attachments
from internal.attachments.s3_client import Bucket, S3Client
from internal.attachments.upload_folder import UploadFolder
from internal.channels.cli.application import Check
from internal.config.home import HomeError, read_token
from internal.config.loader import Loaded
from internal.mcp.definition_files import PACKAGES_FOLDER
from internal.observability.clock import SystemClock
from internal.sandbox.roots import PrivatePlaces
from internal.sandbox.workspaces import VERSIONS_FOLDER, Workspaces
from internal.settings.settings import AttachmentsSettings, S3Settings, Settings
from internal.settings.types import HOST_NAME, ConfigError
from internal.storage.sqlite.mounts import find_network_file_system
from internal.tools.instruction_trust import InstructionTrust
from internal.tools.protected_paths import ProtectedPaths
from internal.workspace_changes.records import ChangeFolder
from internal.workspace_changes.tree import OpenWorkspaceTree
from internal.worktrees.worktrees import GitWorktrees

_CHECK = "attachments"
STORAGE_INTERVAL_SECONDS = 5.0
"""How often it is checked that what all hosts share can be reached."""
ABSENCE_INTERVAL_SECONDS = 10.0
SAVE_INTERVAL_SECONDS = 2.0
NO_HOST = "-"
"""What removes files in place of a host where no runs are executed."""
_MAX_NAME = 50


def attachments_folder(settings: AttachmentsSettings, home: Path) -> Path:
    """Return the folder of the local store; for a bucket that of its spool."""
    if settings.store == "local" and settings.folder is not None:
        return settings.folder
    return home / "attachments"


@contextmanager
def open_attachments(settings: AttachmentsSettings, home: Path) -> Generator[Attachments]:
    """Open the store. Nothing is read or written yet.

    Raises:
        ConfigError: it needs a library that is not installed.
    """
    folder = attachments_folder(settings, home)
    if settings.store == "local":
        yield LocalAttachments(folder)
        return
    client = _connect(settings.s3)
    try:
        yield S3Attachments(client, settings.s3.prefix, folder)
    finally:
        client.close()


def make_session_files(
    settings: AttachmentsSettings,
    attachments: Attachments,
    workspaces: Workspaces,
    *,
    database: Database,
    stores: Stores,
    home: Path,
    clock: Clock,
) -> SessionFiles:
    """Return the files of sessions in a store."""
    return SessionFiles(
        database,
        stores,
        attachments,
        workspaces,
        uploads=UploadFolder(home / "uploads", quota=settings.max_session_bytes),
        clock=clock,
        max_file_bytes=settings.max_file_bytes,
    )


def make_worktree_applier(
    workspaces: Workspaces,
    files: SessionFiles,
    *,
    database: Database,
    stores: Stores,
    clock: Clock,
) -> WorktreeApplier:
    """Return the applier of the changes of subtasks to the folders of their creators."""
    return WorktreeApplier(
        database,
        stores,
        clock,
        files=files,
        worktrees=workspaces.worktrees,
        workspaces=workspaces.create,
        remove_worktree=workspaces.remove_worktree,
    )


def make_changed_files(
    workspaces: Workspaces,
    changes: WorkspaceChanges,
    protected: ProtectedPaths,
    *,
    database: Database,
    stores: Stores,
    clock: Clock,
) -> ChangedFiles:
    """Return the changed files of runs and the files of workspaces, for people."""
    return ChangedFiles(
        database,
        stores,
        clock,
        changes=changes,
        tree=OpenWorkspaceTree(protected),
        workspaces=workspaces.find,
    )


def check_attachments(settings: AttachmentsSettings, home: Path) -> Check:
    """Check the store: a small object is written to a bucket, read and removed."""
    if settings.store == "local":
        return Check(_CHECK, "ok", f"Files are stored in {attachments_folder(settings, home)}.")
    s3 = settings.s3
    try:
        client = _connect(s3)
    except ConfigError as error:
        return Check(_CHECK, "fail", str(error))
    try:
        asyncio.run(_probe(client, f"{s3.prefix}/probe-{secrets.token_hex(8)}".lstrip("/")))
    except LarkspurError as error:
        return Check(_CHECK, "fail", f"{str(error)[:1].upper()}{str(error)[1:]}.")
    finally:
        client.close()
    place = f"the bucket {s3.bucket} at {s3.endpoint}"
    return Check(_CHECK, "ok", f"Files can be written to {place}, read and removed.")


async def _probe(client: S3Client, key: str) -> None:
    content = secrets.token_bytes(16)
    await client.upload(key, io.BytesIO(content), len(content))
    try:
        if b"".join([piece async for piece in client.read(key)]) != content:
            raise LarkspurError("an object was read that is not the one that was written")
    finally:
        await client.remove(key)


def _connect(s3: S3Settings) -> S3Client:
    if find_spec("minio") is None:
        raise ConfigError(
            "attachments.store is s3, but minio is not installed; install the extra"
            " larkspur-gateway[s3]."
        )
    assert s3.endpoint and s3.bucket and s3.access_key and s3.secret_key  # noqa: S101, PT018 - checked by the settings
    access_key, secret_key = s3.access_key.get_secret_value(), s3.secret_key.get_secret_value()
    return S3Client(Bucket(s3.endpoint, s3.bucket, s3.region, access_key, secret_key))


def has_local_files(settings: Settings, home: Path) -> bool:
    """Return whether the folders of sessions and skills are on local disks: in the home folder."""
    has_others = settings.workspaces.folder is not None or bool(settings.skills.paths)
    return not has_others and find_network_file_system(home) is None


def protected_paths(loaded: Loaded, workspaces: Workspaces) -> ProtectedPaths:
    """Return the paths that no tool opens: all that Larkspur itself reads and writes."""
    files = [*own_files(loaded), *folders_elsewhere(loaded)]
    return ProtectedPaths(loaded.home, files=files, session_folders=workspaces.roots)


def folders_elsewhere(loaded: Loaded) -> list[Path]:
    """Return the paths of Larkspur that the settings place outside of its home folder."""
    home, workspaces = loaded.home, open_workspaces(loaded)
    names = (VERSIONS_FOLDER, MARKER_FILE, "instructions.json", "instructions.lock")
    folders = [
        attachments_folder(loaded.settings.attachments, home),
        *workspaces.roots,
        *(workspaces.root / name for name in names),
    ]
    return [folder for folder in folders if folder.parent != home]


def private_places(loaded: Loaded) -> PrivatePlaces:
    """Return the places hidden from commands, except the folders of their own session."""
    hidden = (loaded.home, *own_files(loaded), *folders_elsewhere(loaded))
    installed = (packages_folder(loaded), loaded.home / PACKAGES_FOLDER)
    return PrivatePlaces(hidden, (*open_workspaces(loaded).roots, *installed))


def packages_folder(loaded: Loaded) -> Path:
    """Return where the packages of commands are installed."""
    return loaded.home / "packages"


def own_files(loaded: Loaded) -> list[Path]:
    """Return the files of Larkspur that may be outside of its home folder."""
    files = []
    if database := loaded.settings.database.path:
        suffixes = ("", "-wal", "-shm", "-journal", "-gateway")  # "-gateway": dispatch/lock.py
        files += [database.with_name(f"{database.name}{suffix}") for suffix in suffixes]
    # a missing one as well: nobody else is to make it; but the readers of documents need Python
    python = Path(sys.executable).resolve()
    named = [file for hook in loaded.settings.hooks for file in hook.files]
    files += [file for file in named if not file.is_dir() and file.resolve() != python]
    return files if loaded.file is None else [*files, loaded.file.absolute()]


def spans_hosts(settings: Settings) -> bool:
    """Return whether several hosts may use the database."""
    return bool(settings.dispatch.host) or settings.database.path is None


def open_workspaces(loaded: Loaded) -> Workspaces:
    """Return the folders of sessions."""
    return Workspaces(
        loaded.home,
        GitWorktrees(),
        loaded.settings.workspaces.folder,
        remove_changes=ChangeFolder(changes_folder(loaded)).remove_session,
    )


def changes_folder(loaded: Loaded) -> Path:
    """Return the folder with the records of changes by runs in workspaces."""
    return loaded.home / "workspace-changes"


def open_trust(loaded: Loaded) -> InstructionTrust:
    """Return the instructions that agents may follow: known wherever the workspaces are."""
    return InstructionTrust(open_workspaces(loaded).root)


async def find_host(loaded: Loaded, database: Database, stores: Stores, now: str) -> Host:
    """Return the host of this process, and store it.

    Raises:
        Conflict: another host has its name, or its folder.
        StoreUnavailable: the folder of the workspaces cannot be used.
    """
    settings = loaded.settings
    if not spans_hosts(settings):
        return ONLY_HOST
    folder, location = open_workspaces(loaded).root, settings.workspaces.location
    marker = await asyncio.to_thread(find_marker, folder, new_marker())
    name = await database.write(
        partial(
            register_host,
            stores,
            settings.dispatch.host,
            machine=_machine_name(),
            marker="" if location == "shared" else marker,
            folder=str(folder),
            now=now,
        )
    )
    return Host(name, location, str(folder), has_hooks=bool(settings.hooks))


def _shared_parts(loaded: Loaded, attachments: Attachments) -> list[StoragePart]:
    """Return the parts of storage that this host shares with the others."""
    settings = loaded.settings
    parts = [
        StoragePart(
            "attachments",
            attachments.identify,
            new_marker(),
            f"The attachments of this host ({_place(settings.attachments, loaded.home)}) are not"
            " those of the other hosts that use the database: set attachments.store to s3, or"
            " attachments.folder to a folder that all hosts share, and restart.",
        )
    ]
    if settings.workspaces.location == "shared":
        folder = open_workspaces(loaded).root

        async def identify_folder(new: str) -> str:
            marker = await asyncio.to_thread(find_marker, folder, new)
            return f"{marker} at {folder}" if marker else ""  # runs know their folder by its path

        parts.append(
            StoragePart(
                "workspaces",
                identify_folder,
                new_marker(),
                f"The folder {folder} is not the one that the other hosts share for workspaces:"
                " mount that at the same path on all hosts (workspaces.folder), and restart.",
            )
        )
    if secret := _home_secret(loaded.home):

        async def identify_home(_new: str) -> str:
            return await asyncio.to_thread(_home_secret, loaded.home)

        parts.append(
            StoragePart(
                "home",
                identify_home,
                secret,
                f"The home folder {loaded.home} has another token than those of the other hosts"
                " that use the database: copy the files token, settings.json and mcp*.json, and the"
                " folders skills and profiles, from one of them; see docs/hosts.md.",
                may_change=True,
            )
        )
    return parts


@asynccontextmanager
async def working_host(
    loaded: Loaded,
    keeper: WorkspaceKeeper,
    attachments: Attachments,
    *,
    database: Database,
    stores: Stores,
    broadcaster: EventBroadcaster,
    supervisor: Supervisor,
    is_terminal: bool = False,
) -> AsyncGenerator[SharedStorage]:
    """Check the storage shared with other hosts, and do the work of one of them in a block.

    A terminal serves nobody: its home folder may be another one than those of gateways.

    Raises:
        LarkspurError: this host has other storage than the others, or cannot reach it.
    """
    parts = _shared_parts(loaded, attachments)
    storage = SharedStorage(
        database, stores, [part for part in parts if part.kind != "home" or not is_terminal]
    )
    if not spans_hosts(loaded.settings):
        yield storage
        return
    await storage.open()
    absence = HostAbsence(
        keeper.host.name, database, stores, broadcaster=broadcaster, clock=SystemClock()
    )
    async with AsyncExitStack() as stack:
        for task, work, interval in (
            ("shared storage", storage.check, STORAGE_INTERVAL_SECONDS),
            ("hosts", absence.check, ABSENCE_INTERVAL_SECONDS),
            ("workspaces", keeper.save_unsaved, SAVE_INTERVAL_SECONDS),
        ):
            repeated = supervisor.repeat(task, work, interval=interval)
            await stack.enter_async_context(background_task(repeated))
        yield storage


def _place(settings: AttachmentsSettings, home: Path) -> str:
    if settings.store == "s3":
        return f"{settings.s3.endpoint}/{settings.s3.bucket}/{settings.s3.prefix}"
    return f"the folder {attachments_folder(settings, home)}"


def _home_secret(home: Path) -> str:
    """Return a value that identifies the token of a home folder, "" without a token."""
    try:
        token = read_token(home)
    except HomeError:
        return ""
    return hmac.new(token.encode(), b"larkspur home folder", hashlib.sha256).hexdigest()


def _machine_name() -> str:
    """Return the name of this machine as that of a host."""
    name = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:_MAX_NAME].lstrip("._-")
    return name if HOST_NAME.fullmatch(name) else "host"

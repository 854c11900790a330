"""The store of files that the settings name, and its check."""

import asyncio
import io
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from internal.agent.app.files.session_files import SessionFiles
from internal.agent.domain.errors import LarkspurError
from internal.agent.ports.attachments import Attachments
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.attachments.local import LocalAttachments
from internal.attachments.s3 import S3Attachments
from internal.attachments.s3_client import Bucket, S3Client
from internal.attachments.upload_folder import UploadFolder
from internal.channels.cli.application import Check
from internal.config.settings import AttachmentsSettings, S3Settings
from internal.config.types import ConfigError
from internal.sandbox.workspaces import Workspaces

_CHECK = "attachments"


@contextmanager
def open_attachments(settings: AttachmentsSettings, home: Path) -> Generator[Attachments]:
    """Open the store. Nothing is read or written yet.

    Raises:
        ConfigError: it needs a library that is not installed.
    """
    folder = home / "attachments"
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


def check_attachments(settings: AttachmentsSettings, home: Path) -> Check:
    """Check the store: a small object is written to a bucket, read and removed."""
    if settings.store == "local":
        return Check(_CHECK, "ok", f"Files are stored in {home / 'attachments'}.")
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
            "attachments.store is s3, but minio is not installed; install larkspur[s3]."
        )
    assert s3.endpoint and s3.bucket and s3.access_key and s3.secret_key  # noqa: S101, PT018 - checked by the settings
    access_key, secret_key = s3.access_key.get_secret_value(), s3.secret_key.get_secret_value()
    return S3Client(Bucket(s3.endpoint, s3.bucket, s3.region, access_key, secret_key))

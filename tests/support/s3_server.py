"""A storage service with the S3 protocol in a process: `rclone serve s3`."""

import asyncio
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from internal.attachments.s3_client import Bucket
from tests.support.ports import free_port

BUCKET = "files"
_RCLONE = Path(sys.executable).with_name("rclone")
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


class S3Server:
    """A server on 127.0.0.1 with one bucket, which keeps its port when it is started again."""

    access_key, secret_key = "test-access-key", "test-secret-key"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._process: asyncio.subprocess.Process | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a gateway that stores its files here."""
        values = {
            "STORE": "s3",
            "S3__ENDPOINT": self.endpoint,
            "S3__BUCKET": BUCKET,
            "S3__ACCESS_KEY": self.access_key,
            "S3__SECRET_KEY": self.secret_key,
        }
        return {f"LARKSPUR_ATTACHMENTS__{name}": value for name, value in values.items()}

    def bucket(self, name: str = BUCKET, secret_key: str = secret_key) -> Bucket:
        return Bucket(self.endpoint, name, "us-east-1", self.access_key, secret_key)

    def objects(self) -> list[Path]:
        """Return the files of all objects."""
        return sorted(path for path in (self.folder / BUCKET).rglob("*") if path.is_file())

    async def start(self) -> None:
        (self.folder / BUCKET).mkdir(parents=True, exist_ok=True)
        self._process = await asyncio.create_subprocess_exec(
            *(_RCLONE, "serve", "s3", str(self.folder), "--config", "/dev/null"),
            *("--auth-key", f"{self.access_key},{self.secret_key}"),
            *("--addr", f"127.0.0.1:{self.port}", "--dir-cache-time", "0s"),
            stderr=asyncio.subprocess.PIPE,
        )
        assert self._process.stderr is not None
        line = ""
        async with asyncio.timeout(30):
            while _ADDRESS.search(line) is None:
                line = (await self._process.stderr.readline()).decode()
                assert line, "rclone ended"

    async def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            await self._process.communicate()
            self._process = None


@asynccontextmanager
async def s3_server(folder: Path) -> AsyncGenerator[S3Server]:
    """Serve the folder."""
    server = S3Server(folder)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()

"""A connection pooler in front of the PostgreSQL server of the tests."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.support.ports import free_port
from tests.support.postgres_server import PASSWORD, USER, PostgresServer


@asynccontextmanager
async def pgbouncer(
    folder: Path, server: PostgresServer, name: str, mode: str
) -> AsyncGenerator[str]:
    """Run PgBouncer in a pool mode, such as `transaction`, and yield the URL of a database."""
    port = free_port()
    database = f"{name} = host=127.0.0.1 port={server.port}"
    await asyncio.to_thread(_configure, folder, port, database, mode)
    ids = ["--user", "postgres"] if os.geteuid() == 0 else []
    process = await asyncio.create_subprocess_exec(
        *("pgbouncer", *ids, str(folder / "pgbouncer.ini")),
        env={"PATH": "/usr/sbin:/usr/bin:/bin"},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(30):
            while b"process up" not in (line := await process.stderr.readline()):
                assert line, "PgBouncer has ended"
        yield f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/{name}"
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


def _configure(folder: Path, port: int, database: str, mode: str) -> None:
    folder.chmod(0o755)
    (folder / "users").write_text(f'"{USER}" "{PASSWORD}"\n', encoding="utf-8")
    (folder / "pgbouncer.ini").write_text(
        f"""
[databases]
{database}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = plain
auth_file = {folder}/users
pool_mode = {mode}
default_pool_size = 20
""",
        encoding="utf-8",
    )

"""A database that cannot be used is refused by `serve` with a sentence, and not changed."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from internal.storage.migrations import newest_version
from tests.support.database_files import create_database, execute, file_contents

LARKSPUR = Path(sys.executable).with_name("larkspur")


def truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def overwrite(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xa5" * (size // 4))


def make_newer(path: Path) -> None:
    version = newest_version("sqlite") + 1
    execute(
        path,
        f"insert into schema_migrations values ({version}, 'later', '2030')",  # noqa: S608 - a number
        f"pragma user_version = {version}",
        "pragma wal_checkpoint(truncate)",
    )


CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    "truncated": (truncate, "was not changed. Restore it from a backup"),
    "overwritten": (overwrite, "was not changed. Restore it from a backup"),
    "newer": (make_newer, "and was not changed. Upgrade Larkspur."),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.first_rows(1)
async def test_an_unusable_database_is_refused(
    environ: dict[str, str], home: Path, work: Path, case: str
) -> None:
    path, (damage, advice) = home / "larkspur.db", CASES[case]
    await create_database(path, sessions=200)
    damage(path)
    before = file_contents(home, path.name)

    done = subprocess.run(  # noqa: ASYNC221 - nothing else runs
        [LARKSPUR, "serve", "--port", "0"],
        env=environ, cwd=work, capture_output=True, check=False, timeout=60,
    )  # fmt: skip

    said = done.stderr.decode()
    assert done.returncode != 0
    assert said.count(f"The database {path} ") == 1, said
    assert advice in said
    assert "Traceback" not in said
    assert file_contents(home, path.name) == before

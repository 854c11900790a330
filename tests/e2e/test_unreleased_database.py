"""Data folders of versions before the first release are refused and not changed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.database_files import create_unreleased_database, file_contents

LARKSPUR = Path(sys.executable).with_name("larkspur")


@pytest.mark.parametrize(
    ("argv", "exit_code"),
    [
        (["serve"], 3),
        pytest.param(["-p", "hello"], 3, marks=pytest.mark.slow),
        pytest.param(["doctor"], 3, marks=pytest.mark.slow),
    ],
    ids=["serve", "one-shot", "doctor"],
)
def test_the_sentence_of_an_unreleased_database(
    environ: dict[str, str], home: Path, work: Path, argv: list[str], exit_code: int
) -> None:
    path = home / "larkspur.db"
    create_unreleased_database(path, version=4)
    before = file_contents(home)[path.name]

    done = subprocess.run(
        [LARKSPUR, *argv], env=environ, cwd=work, capture_output=True, check=False, timeout=60
    )

    output = (done.stdout + done.stderr).decode()
    sentence = (
        f"The database {path} was written by an earlier, unreleased version of Larkspur and cannot "
        "be used: move it away to start with a new one."
    )
    assert output.count(sentence) == 1, output
    assert done.returncode == exit_code
    assert "Traceback" not in output
    assert file_contents(home)[path.name] == before

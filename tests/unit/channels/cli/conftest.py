"""A server with fixed answers in place of a gateway, and programs that read a clipboard."""

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.http_answers import AnsweringServer


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with AnsweringServer() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def clipboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that installs a clipboard program; there is none before."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "cat", "head", "sleep"):
        (programs / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(programs))

    def install(script: str, name: str = "xclip") -> None:
        (programs / name).write_text(f"#!{programs}/sh\n{script}\n")
        (programs / name).chmod(0o700)

    return install

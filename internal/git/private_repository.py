"""A repository for the files of a folder that nobody else writes.

The configuration, attributes and hooks of the folder's own repository are not read, so no filter of
a file and nothing else that it names can run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from internal.git.process import run_git

_SHA256_DIGITS = 64


@contextmanager
def private_repository(work: str, objects: str = "", base: str = "") -> Iterator[dict[str, str]]:
    """Yield the variables of git for a new repository with the files of a folder.

    Args:
        work: the folder with the files.
        objects: the folder of the objects that it uses, "" for its own.
        base: a commit among these objects, whose hash it uses, "" without one.

    Raises:
        GitFailed: it cannot be made.
    """
    with TemporaryDirectory(prefix="larkspur-git-") as folder:
        form = object_format(base)
        run_git("init", "--quiet", "--bare", "--template=", form, ".", folder=folder)
        own = {"GIT_DIR": folder, "GIT_WORK_TREE": work}
        yield {**own, "GIT_OBJECT_DIRECTORY": objects} if objects else own


def object_format(commit: str) -> str:
    """Return the option of `git init` for the hash of a commit."""
    return f"--object-format={'sha256' if len(commit) == _SHA256_DIGITS else 'sha1'}"

"""A limit on the size of files, so that a write fails in the middle."""

import contextlib
import resource
from collections.abc import Iterator


@contextlib.contextmanager
def limited_file_size(limit: int = 1_000) -> Iterator[None]:
    """Let no file of this process grow beyond `limit` bytes.

    Not a fixture: pytest reports the outcome of a test before its teardown, perhaps to a file.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

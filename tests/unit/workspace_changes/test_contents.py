"""Contents of files: secrets by their names, limits, and files that are none."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from internal.workspace_changes import contents
from internal.workspace_changes.contents import ContentReader, hash_of, is_secret, read_file


@pytest.fixture
def opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def test_secrets_are_known_by_their_names() -> None:
    secret = (".env", "a/.ENV.local", "prod.env", "deep/id_rsa", "x.pem", ".aws/config", ".netrc")
    assert [path for path in secret if not is_secret(path)] == []
    plain = (
        "env",
        ".env.example",
        "id_rsa.pub",
        "pem",
        "aws/config",
        "a.key.txt",
        "credentials.md",
    )
    assert [path for path in plain if is_secret(path)] == []


def test_a_file_is_read_up_to_the_limit(folder: Path, opened: int) -> None:
    (folder / "a").write_bytes(b"x" * 10)
    assert read_file(opened, "a", 10)[0] == b"x" * 10
    assert read_file(opened, "a", 9)[0] is None
    (folder / "empty").write_bytes(b"")
    assert read_file(opened, "empty", 10)[0] == b""


def test_a_file_without_a_size_is_read_to_its_end() -> None:
    proc = os.open("/proc/self", os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert os.stat("status", dir_fd=proc).st_size == 0
        content, _ = read_file(proc, "status", 100_000)
        assert content is not None
        assert content.startswith(b"Name:")
        assert read_file(proc, "status", 20)[0] is None
    finally:
        os.close(proc)


def test_what_is_no_file_is_not_read(folder: Path, opened: int) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("/etc/passwd")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match=r"not a regular file|symbolic links"):
            read_file(opened, name, 10)


def test_a_sparse_file_and_one_beyond_the_room_are_named_only(folder: Path, opened: int) -> None:
    kept: dict[str, bytes] = {}
    with (folder / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    (folder / "a").write_bytes(b"12345")
    status = (folder / "sparse").lstat()
    reader = ContentReader(kept.__setitem__, contents.MAX_KEPT_BYTES - 4)
    assert reader.read(opened, "sparse", "sparse", status).content == ""
    assert reader.read(opened, "a", "a", (folder / "a").lstat()).content == ""
    assert kept == {}
    roomy = ContentReader(kept.__setitem__, 0)
    state = roomy.read(opened, "a", "a", (folder / "a").lstat())
    assert (state.kind, state.content, state.size) == ("file", hash_of(b"12345"), 5)
    # a file of this moment may change once more without another time
    assert state.identity == ""
    assert kept == {hash_of(b"12345"): b"12345"}


def test_a_link_is_where_it_leads(folder: Path, opened: int) -> None:
    kept: dict[str, bytes] = {}
    (folder / "link").symlink_to("../elsewhere")
    reader = ContentReader(kept.__setitem__, 0)
    state = reader.read(opened, "link", "link", (folder / "link").lstat())
    assert (state.kind, kept[state.content]) == ("link", b"../elsewhere")

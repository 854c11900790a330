"""Paths that are opened without being led elsewhere."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from internal.open_files.paths import (
    O_PATH,
    destination,
    find_links,
    open_beneath,
    open_components,
    open_without_links,
    resolve_links,
)
from tests.support.exchanged_folders import exchanging

Opener = Callable[[int, tuple[str, ...], int], int]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.txt").write_bytes(b"inside\n")
    return root


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret\n")
    return outside


@pytest.fixture(params=["openat2", "open_components"])
def opener(request: pytest.FixtureRequest) -> Opener:
    return open_beneath if request.param == "openat2" else open_components


def opened(opener: Opener, folder: int, *parts: str) -> bytes:
    descriptor = opener(folder, parts, os.O_RDONLY)
    try:
        return os.read(descriptor, 100)
    finally:
        os.close(descriptor)


@pytest.fixture
def folder(root: Path) -> Iterator[int]:
    descriptor = os.open(root, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def test_both_openers_open_paths_inside(opener: Opener, folder: int) -> None:
    assert opened(opener, folder, "src", "a.txt") == b"inside\n"
    os.close(opener(folder, (), os.O_RDONLY | os.O_DIRECTORY))


def test_both_openers_reject_paths_that_lead_outside(
    opener: Opener, folder: int, root: Path, outside: Path
) -> None:
    (root / "file").symlink_to(outside / "secret")
    (root / "out").symlink_to(outside)
    for parts in (("file",), ("out", "secret")):
        with pytest.raises(OSError, match=r"symbolic|device|directory"):
            opened(opener, folder, *parts)


def test_both_openers_stay_inside_while_folders_are_swapped_with_links(
    opener: Opener, folder: int, root: Path, outside: Path
) -> None:
    """A folder is swapped with a link to the outside, over and over, while it is read."""
    inside = root / "swap"
    inside.mkdir()
    (inside / "secret").write_bytes(b"mine\n")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            inside.rename(root / "away")
            inside.symlink_to(outside)
            inside.unlink()
            (root / "away").rename(inside)

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen: set[bytes] = set()
    refused = 0
    try:
        while refused < 50 or not seen:
            try:
                seen.add(opened(opener, folder, "swap", "secret"))
            except OSError:
                refused += 1
    finally:
        over.set()
        swapping.join()
    assert seen == {b"mine\n"}


@pytest.mark.parametrize("flags", [os.O_RDONLY, O_PATH])
def test_a_path_without_links_is_opened(root: Path, outside: Path, flags: int) -> None:
    os.close(open_without_links(f"{root}/src/a.txt", flags))
    (root / "link").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    for path in ("link", "link/secret", "file"):
        with pytest.raises(OSError, match=r"symbolic|directory"):
            open_without_links(f"{root}/{path}", flags)
    with pytest.raises(FileNotFoundError):
        open_without_links(f"{root}/absent", flags)


def test_it_is_told_where_a_path_leads(root: Path, outside: Path) -> None:
    (root / "link").symlink_to(outside)
    (root / "loop").symlink_to("loop")
    found = [find_links(f"{root}/{name}") for name in ("src", "absent", "link", "link/secret")]
    assert found == ["", "", str(outside), f"{outside}/secret"]
    assert resolve_links([f"{root}/./link", "/"]) == {f"{root}/link": str(outside), "/": "/"}
    assert find_links(f"{root}/loop") == ""  # it leads nowhere, and cannot be opened


def test_a_path_that_changes_all_the_time_leads_to_one_of_its_places(
    root: Path, outside: Path
) -> None:
    (root / "link").symlink_to(outside)
    with exchanging(root, "src", "link"):
        found = {destination(f"{root}/src") for _ in range(2_000)}
    assert found == {f"{root}/src", str(outside)}

"""File access stays inside the workspace: names, links, special files, races."""

import contextlib
import itertools
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from internal.agent.domain.errors import ToolError
from internal.tools.protected_paths import ProtectedPaths
from internal.tools.workspace import Workspace
from tests.support.file_size_limit import limited_file_size
from tests.support.tools import unprotected

SECRET = b"secret\n"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_bytes(SECRET)
    return folder


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "src" / "a.txt").write_bytes(b"inside\n")
    return folder


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace(str(root), unprotected(root))


def read(workspace: Workspace, path: str) -> bytes:
    return workspace.read(workspace.parse(path)).content


def write(workspace: Workspace, path: str, content: bytes = b"new") -> bool:
    return workspace.write(workspace.parse(path), content)


@pytest.mark.parametrize(
    "text", ["src/a.txt", "./src/a.txt", "src//a.txt", "src/./a.txt", "src/a.txt/"]
)
def test_a_relative_path_starts_at_the_workspace(workspace: Workspace, text: str) -> None:
    assert str(workspace.parse(text)) == "src/a.txt"
    assert read(workspace, text) == b"inside\n"


def test_an_absolute_path_inside_is_made_relative(workspace: Workspace, root: Path) -> None:
    assert read(workspace, f"{root}/src/a.txt") == b"inside\n"
    assert str(workspace.parse(str(root))) == "."


@pytest.mark.parametrize("place", ["link", "link/src"])
def test_a_link_in_the_place_of_the_workspace_is_not_followed(
    root: Path, tmp_path: Path, place: str
) -> None:
    (tmp_path / "link").symlink_to(root)
    by_link = Workspace(str(tmp_path / place), unprotected(tmp_path))
    with pytest.raises(ToolError, match=f"cannot be opened: it leads to {root}"):
        read(by_link, "a.txt")


BAD_PATHS = {
    "": "empty",
    "  ": "empty",
    "..": r"contains '\.\.'",
    "../outside/secret": r"contains '\.\.'",
    "src/../../outside/secret": r"contains '\.\.'",
    "src/../src/a.txt": r"contains '\.\.'",
    "/etc/passwd": "outside the workspace",
    "/": "outside the workspace",
    "a\0b": "NUL",
    "\ud800": "not valid text",
    "x" * 256: "longer than 255 bytes",
    "x/" * 3000: "longer than 4000 bytes",
}


@pytest.mark.parametrize(("text", "says"), BAD_PATHS.items())
def test_a_bad_path_is_refused_with_its_reason(workspace: Workspace, text: str, says: str) -> None:
    with pytest.raises(ToolError, match=says):
        workspace.parse(text)


def test_a_folder_with_the_same_name_prefix_is_outside(workspace: Workspace, root: Path) -> None:
    (root.parent / "workspace-2").mkdir()
    with pytest.raises(ToolError, match="outside"):
        workspace.parse(f"{root}-2/secret")


def chain(root: Path, outside: Path) -> None:
    (root / "y").symlink_to(outside / "secret")
    (root / "x").symlink_to("y")


LEADS_OUT: dict[str, Callable[[Path, Path], object]] = {
    "absolute link": lambda root, out: (root / "x").symlink_to(out / "secret"),
    "relative link": lambda root, out: (root / "x").symlink_to("../outside/secret"),
    "link to a link": chain,
    "link through a folder": lambda root, out: (root / "x").symlink_to("src/../../outside/secret"),
    "magic link": lambda root, out: (root / "x").symlink_to("/proc/self/root/etc/passwd"),
}


@pytest.mark.parametrize("make", LEADS_OUT.values(), ids=LEADS_OUT)
def test_a_link_to_the_outside_is_rejected(
    workspace: Workspace, root: Path, outside: Path, make: Callable[[Path, Path], object]
) -> None:
    make(root, outside)
    with pytest.raises(ToolError, match="symbolic link"):
        read(workspace, "x")
    with pytest.raises(ToolError, match="symbolic link"):
        write(workspace, "x")
    assert (outside / "secret").read_bytes() == SECRET


def test_a_folder_link_to_the_outside_is_rejected(
    workspace: Workspace, root: Path, outside: Path
) -> None:
    (root / "out").symlink_to(outside)
    for attempt in (
        lambda: read(workspace, "out/secret"),
        lambda: write(workspace, "out/new"),
        lambda: write(workspace, "out/deep/new"),
    ):
        with pytest.raises(ToolError, match="leads outside the workspace"):
            attempt()
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_links_that_stay_inside_are_followed_for_reading(workspace: Workspace, root: Path) -> None:
    (root / "src" / "deep" / "up").symlink_to("../a.txt")
    (root / "folder").symlink_to("src")
    assert read(workspace, "src/deep/up") == b"inside\n"
    assert read(workspace, "folder/a.txt") == b"inside\n"
    assert write(workspace, "folder/b.txt")
    assert (root / "src" / "b.txt").read_bytes() == b"new"


def test_writing_to_a_symbolic_link_is_rejected(workspace: Workspace, root: Path) -> None:
    (root / "x").symlink_to("src/a.txt")
    with pytest.raises(ToolError, match="is a symbolic link"):
        write(workspace, "x")
    assert (root / "x").is_symlink()


def test_a_hard_link_is_read_and_not_written_to(
    workspace: Workspace, root: Path, outside: Path
) -> None:
    os.link(outside / "secret", root / "x")
    assert read(workspace, "x") == SECRET
    with pytest.raises(ToolError, match="2 names"):
        write(workspace, "x")
    assert (outside / "secret").read_bytes() == SECRET


def make_socket(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"/proc/self/fd/{folder}/{path.name}")  # the whole path may be too long
    os.close(folder)


SPECIAL: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "socket": make_socket,
}


@pytest.mark.parametrize("make", SPECIAL.values(), ids=SPECIAL)
def test_special_files_are_rejected(
    workspace: Workspace, root: Path, make: Callable[[Path], object]
) -> None:
    make(root / "x")
    with pytest.raises(ToolError, match="not a regular file"):
        read(workspace, "x")
    with pytest.raises(ToolError, match="not a regular file"):
        write(workspace, "x")


def test_a_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="not a regular file"):
        read(Workspace("/dev", unprotected(tmp_path)), "zero")


def test_a_folder_cannot_be_read_or_written_as_a_file(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match="src is a folder: use list_dir"):
        read(workspace, "src")
    with pytest.raises(ToolError, match="src is a folder"):
        write(workspace, "src")
    with pytest.raises(ToolError, match="the workspace itself"):
        write(workspace, ".")
    with pytest.raises(ToolError, match="is not a folder"):
        write(workspace, "src/a.txt/b")
    with pytest.raises(ToolError, match="does not exist"):
        read(workspace, "nothing")


def test_a_large_file_is_refused_before_it_is_read(workspace: Workspace, root: Path) -> None:
    with (root / "large").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ToolError, match=r"larger than 16,384 KB"):
        read(workspace, "large")


def test_a_missing_workspace_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="gone cannot be opened"):
        read(Workspace(str(tmp_path / "gone"), unprotected(tmp_path)), "a")


def test_a_write_creates_folders_and_returns_whether_the_file_is_new(
    workspace: Workspace, root: Path
) -> None:
    assert write(workspace, "a/b/c.txt", b"1")
    assert not write(workspace, "a/b/c.txt", b"2")
    assert (root / "a" / "b" / "c.txt").read_bytes() == b"2"
    assert [path.name for path in (root / "a" / "b").iterdir()] == ["c.txt"]


def test_a_write_keeps_the_mode_but_no_special_bits(workspace: Workspace, root: Path) -> None:
    script = root / "run.sh"
    script.write_text("old")
    script.chmod(0o4750)
    write(workspace, "run.sh")
    assert stat.S_IMODE(script.stat().st_mode) == 0o750


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".git", "sub/.GIT/config"])
def test_files_of_git_are_not_written(workspace: Workspace, path: str) -> None:
    with pytest.raises(ToolError, match="belongs to git"):
        write(workspace, path)


def test_a_file_that_changed_meanwhile_is_not_overwritten(workspace: Workspace, root: Path) -> None:
    path = workspace.parse("src/a.txt")
    contents = workspace.read(path)
    (root / "src" / "a.txt").write_bytes(b"somebody else's")
    with pytest.raises(ToolError, match="changed meanwhile"):
        workspace.write(path, b"mine", expected=contents)
    (root / "src" / "a.txt").unlink()
    with pytest.raises(ToolError, match="changed meanwhile"):
        workspace.write(path, b"mine", expected=contents)


def test_a_failed_write_changes_nothing(workspace: Workspace, root: Path) -> None:
    with limited_file_size(), pytest.raises(ToolError, match="cannot be used: File too large"):
        write(workspace, "src/a.txt", b"x" * 2_000)
    assert read(workspace, "src/a.txt") == b"inside\n"
    assert sorted(path.name for path in (root / "src").iterdir()) == ["a.txt", "deep"]


def test_a_write_stays_inside_while_folders_are_swapped_with_links(
    workspace: Workspace, root: Path, outside: Path
) -> None:
    """A folder that is written to becomes a link to the outside, over and over."""
    swap = root / "swap"
    over = threading.Event()

    def swapping() -> None:
        for number in itertools.count():
            if over.is_set():
                return
            with contextlib.suppress(OSError):
                swap.symlink_to(outside)
            with contextlib.suppress(OSError):
                swap.unlink()
            with contextlib.suppress(OSError):
                swap.rename(root / f"away{number}")

    thread = threading.Thread(target=swapping)
    thread.start()
    outcomes: set[bool | None] = set()
    try:
        while len(outcomes) < 2:
            try:
                outcomes.add(workspace.write(workspace.parse("swap/secret"), b"written"))
            except ToolError:
                outcomes.add(None)
    finally:
        over.set()
        thread.join()
    assert (outside / "secret").read_bytes() == SECRET
    assert [path.name for path in outside.iterdir()] == ["secret"]


MOUNTED = """
import sys
from pathlib import Path
from internal.tools.protected_paths import ProtectedPaths
from internal.tools.protected_paths import ProtectedPaths
from internal.tools.workspace import Workspace

root = Path(sys.argv[1])
workspace = Workspace(str(root), ProtectedPaths(root.with_name("no-home")))
path = workspace.parse("mounted")
print(workspace.write(path, b"longer than before", expected=workspace.read(path)))
print(workspace.write(path, b"short"))
print(workspace.read(path).content, sorted(each.name for each in root.iterdir()))
"""


@pytest.mark.needs("mounts")
def test_a_file_that_is_a_mount_point_is_written(tmp_path: Path, environ: dict[str, str]) -> None:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "mounted").touch()
    (tmp_path / "elsewhere").write_text("before")
    mount = 'mount --bind "$1" "$2/mounted" && exec "$3" -c "$4" "$2"'
    ran = subprocess.run(
        [
            *("unshare", "--map-root-user", "--mount", "--propagation", "private"),
            *("sh", "-euc", mount, "sh", str(tmp_path / "elsewhere"), str(folder)),
            *(sys.executable, MOUNTED),
        ],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.split("\n")[:3] == ["False", "False", "b'short' ['mounted']"], ran.stderr
    assert (tmp_path / "elsewhere").read_text() == "short"


def test_names_on_the_way_are_found_by_their_looks(workspace: Workspace, root: Path) -> None:
    (root / "Caf\u00e9\u202f1/x").mkdir(parents=True)
    found = workspace.find(workspace.parse("Cafe\u0301 1/x/new name"))
    assert found.parts == ("Caf\u00e9\u202f1", "x", "new name")
    write(workspace, "Cafe\u0301 1/x/new name")
    assert (root / "Caf\u00e9\u202f1/x/new name").read_bytes() == b"new"
    assert str(workspace.find(workspace.parse("none/at all"))) == "none/at all"
    # a name that exists stands for itself
    (root / "Caf\u00e9 1").mkdir()
    assert workspace.find(workspace.parse("Caf\u00e9 1/x")).parts == ("Caf\u00e9 1", "x")


def test_a_look_alike_leads_to_nothing_that_the_name_does_not(
    workspace: Workspace, root: Path, outside: Path
) -> None:
    (root / "a\u202flink").symlink_to(outside)
    (root / ".git").mkdir()
    (root / ".git/config").write_text("x")
    with pytest.raises(ToolError, match="leads outside"):
        read(workspace, "a link/secret")
    with pytest.raises(ToolError, match="leads outside"):
        write(workspace, "a link/secret")
    with pytest.raises(ToolError, match="belongs to git"):
        write(workspace, "\uff0egit/config")
    with pytest.raises(ToolError, match="does not exist"):
        read(workspace, "\uff0e\uff0e/outside/secret")
    home = root / "My\u202fHome"
    home.mkdir()
    (home / "key\u202ffile").write_text("secret")
    guarded = Workspace(str(root), ProtectedPaths(home))
    with pytest.raises(ToolError, match="belongs to Larkspur"):
        read(guarded, "My Home/key\u202ffile")
    with pytest.raises(ToolError, match="does not exist"):
        read(guarded, "My Home/key file")
    with pytest.raises(ToolError, match="belongs to Larkspur"):
        write(guarded, "My Home/key file")


def test_an_absolute_path_may_look_like_the_workspace_only(tmp_path: Path) -> None:
    root = tmp_path / "Cafe\u0301\u202f1"
    root.mkdir()
    (root / "a.txt").write_bytes(b"inside")
    (tmp_path / "Caf\u00e9 12").mkdir()
    workspace = Workspace(str(root), unprotected(root))
    assert read(workspace, f"{tmp_path}/Caf\u00e9 1/a.txt") == b"inside"
    assert str(workspace.parse(f"{tmp_path}/Caf\u00e9 1")) == "."
    for outside in (f"{tmp_path}/Caf\u00e9 12/a.txt", str(tmp_path), f"{tmp_path}/Caf\u00e9", "/"):
        with pytest.raises(ToolError, match="outside the workspace"):
            workspace.parse(outside)
    everything = Workspace("/", unprotected(root))
    assert str(everything.parse(f"{root}/a.txt")) == f"{root}/a.txt"[1:]

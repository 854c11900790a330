"""The home folder: its owner, its token, and the gateway that runs there."""

import json
import os
import pwd
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from internal.config.home import (
    GatewayAddress,
    HomeError,
    LocalToken,
    ensure_token,
    find_gateway,
    find_home_in,
    locate,
    origin,
    prepare,
    provider_named,
    read_token,
    remove_address,
    write_address,
)

NOBODY = 65_534
HERE = GatewayAddress("127.0.0.1", 8420, os.getpid(), "2026-01-01T00:00:00Z", "offline", "m", "0")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def unprivileged() -> Iterator[Path]:
    """A folder of ours, and no power to look through permissions, also if root runs the tests."""
    with tempfile.TemporaryDirectory() as folder:
        root = os.geteuid() == 0
        if root:
            os.chown(folder, NOBODY, -1)
            os.seteuid(NOBODY)
        try:
            yield Path(folder)
        finally:
            if root:
                os.seteuid(0)
            Path(folder).chmod(0o700)


# where it is


def test_the_home_folder_is_configured_or_the_default(tmp_path: Path) -> None:
    assert locate({"LARKSPUR_HOME": str(tmp_path)}) == tmp_path
    assert locate({}) == Path.home() / ".larkspur"
    assert locate({"LARKSPUR_HOME": "~/lark"}) == Path.home() / "lark"
    assert locate({"LARKSPUR_HOME": "beside"}) == Path.cwd() / "beside"


@pytest.mark.parametrize("given", [None, "", "relative"])
def test_without_a_usable_variable_the_home_folder_is_that_of_the_user(
    monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    if given is None:
        monkeypatch.delenv("HOME", raising=False)
    else:
        monkeypatch.setenv("HOME", given)
    assert locate({}) == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".larkspur"
    assert origin({}) == "the folder of the user"
    assert origin({"LARKSPUR_HOME": "/x"}) == "LARKSPUR_HOME"
    monkeypatch.setenv("HOME", "/x")
    assert (locate({}), origin({})) == (Path("/x/.larkspur"), "HOME")


@pytest.mark.parametrize("name", ["", "  ", "~nobody-of-that-name/x"])
def test_an_invalid_home_folder_is_rejected(name: str) -> None:
    with pytest.raises(HomeError, match="LARKSPUR_HOME"):
        locate({"LARKSPUR_HOME": name})


def test_the_environment_may_name_a_provider() -> None:
    assert provider_named({"LARKSPUR_LLM__PROVIDER": "offline"}) == "offline"
    assert provider_named({}) is None


def test_a_new_home_folder_is_private(tmp_path: Path) -> None:
    home = tmp_path / "a" / "b"
    assert prepare(home) == home
    assert prepare(home) == home
    assert mode(home) == 0o700


@pytest.mark.parametrize("inside", [[], ["config.yaml"], ["token", "notes"]])
def test_the_mode_of_an_existing_home_folder_is_corrected(
    tmp_path: Path, inside: list[str]
) -> None:
    tmp_path.chmod(0o755)
    for name in inside:
        (tmp_path / name).touch()
    prepare(tmp_path)
    assert mode(tmp_path) == 0o700


def test_a_shared_folder_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "somebody's").touch()
    with pytest.raises(HomeError, match=r"contains other files and is accessible to other users"):
        prepare(tmp_path)
    assert mode(tmp_path) == 0o755


@pytest.mark.parametrize("name", ["file", "file/home", "x" * 300, "loop/home"])
def test_a_home_folder_that_cannot_be_made(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(HomeError, match=r"The home folder .* cannot be (created|used): .+\.$"):
        prepare(tmp_path / name)


def test_a_home_folder_that_cannot_be_written() -> None:
    with unprivileged() as folder:
        folder.chmod(0o500)
        with pytest.raises(HomeError, match="cannot be written"):
            prepare(folder)
        with pytest.raises(HomeError, match=r"cannot be used: permission denied"):
            prepare(folder / "home")


def test_a_home_folder_of_someone_else() -> None:
    with unprivileged(), pytest.raises(HomeError, match="belongs to another user"):
        prepare(Path("/usr"))


# the token


def test_a_token_is_created_once_and_private(home: Path) -> None:
    token = ensure_token(home)
    assert len(bytes.fromhex(token)) == 32
    assert mode(home / "token") == 0o600
    assert ensure_token(home) == token == read_token(home)
    assert [path.name for path in home.iterdir()] == ["token"]


def test_tokens_are_unique(home: Path) -> None:
    first = ensure_token(home)
    (home / "token").unlink()
    assert ensure_token(home) != first


def test_concurrent_creators_of_the_token_get_the_same_one(home: Path) -> None:
    crowd = 16
    gate = threading.Barrier(crowd)

    def race(_: int) -> str:
        gate.wait()
        return ensure_token(home)

    with ThreadPoolExecutor(crowd) as pool:
        tokens = set(pool.map(race, range(crowd)))
    assert tokens == {read_token(home)}
    assert [path.name for path in home.iterdir()] == ["token"]


def test_a_replaced_token_is_read_and_the_old_one_forgotten(home: Path) -> None:
    seen: list[str] = []
    token = LocalToken(home, seen.append)
    with pytest.raises(HomeError, match="no local token"):
        token.read()
    first = ensure_token(home)
    assert token.read() == token.read() == first
    path, second = home / "token", "s" * 64
    path.write_text(second + "\n")
    assert token.read() == second
    path.chmod(0o640)
    with pytest.raises(HomeError, match="accessible to other users"):
        token.read()
    path.chmod(0o600)
    assert token.read() == second
    path.write_text("")
    for _ in range(2):
        with pytest.raises(HomeError, match="blank or malformed"):
            token.read()
    path.unlink()
    with pytest.raises(HomeError, match="no local token"):
        token.read()
    third = ensure_token(home)
    assert token.read() == third != second
    assert seen == [first, second, second, third]


def test_a_missing_token_is_reported(home: Path) -> None:
    with pytest.raises(HomeError, match=r"no local token .* `larkspur serve` creates one"):
        read_token(home)
    with pytest.raises(HomeError, match=r"cannot be created: no such file"):
        ensure_token(home / "nowhere")


@pytest.mark.parametrize(
    "content", ["", " \n\t ", "short", "a" * 31, "a" * 20 + " " + "a" * 20, "é" * 40, "\x00" * 64]
)
def test_an_invalid_token_is_rejected(home: Path, content: str) -> None:
    path = home / "token"
    path.touch(mode=0o600)
    path.write_text(content)
    for reader in (read_token, ensure_token):
        with pytest.raises(HomeError, match="blank or malformed"):
            reader(home)


@pytest.mark.parametrize("permissions", [0o640, 0o604, 0o620, 0o602, 0o610])
def test_a_token_readable_by_others_is_rejected_unchanged(home: Path, permissions: int) -> None:
    ensure_token(home)
    (home / "token").chmod(permissions)
    with pytest.raises(HomeError, match=rf"accessible to other users \(mode {permissions:o}\)"):
        ensure_token(home)
    assert mode(home / "token") == permissions


def _link(path: Path) -> None:
    (path.parent / "elsewhere").write_text("a" * 64)
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("lay", [_link, Path.mkdir, os.mkfifo])
def test_a_token_that_is_not_a_regular_file_is_rejected(
    home: Path, lay: Callable[[Path], None]
) -> None:
    lay(home / "token")
    with pytest.raises(HomeError, match=r"token (cannot be read|is not a regular file)"):
        ensure_token(home)


# the gateway


def test_a_running_gateway_is_found_until_it_stops(home: Path) -> None:
    assert find_gateway(home) is None
    write_address(home, HERE._replace(port=1))
    write_address(home, HERE)
    assert mode(home / "gateway.json") == 0o600
    assert find_gateway(home) == HERE
    remove_address(home, HERE.pid + 1)
    assert find_gateway(home) == HERE
    remove_address(home, HERE.pid)
    assert find_gateway(home) is None
    assert list(home.iterdir()) == []
    remove_address(home, HERE.pid)


def test_an_address_has_a_url() -> None:
    assert HERE.url == "http://127.0.0.1:8420"
    assert HERE._replace(host="::1").url == "http://[::1]:8420"


def test_a_gateway_that_ended_is_not_found(home: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        write_address(home, HERE._replace(pid=child.pid))
        assert find_gateway(home) is not None
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert find_gateway(home) is None, "it ended, though its parent has not collected it"
    assert find_gateway(home) is None


def test_another_process_with_the_same_number_is_not_the_gateway(home: Path) -> None:
    write_address(home, HERE)
    stored = json.loads((home / "gateway.json").read_text())
    (home / "gateway.json").write_text(json.dumps({**stored, "birth": "1"}))
    assert find_gateway(home) is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "null",
        "[]",
        "7",
        "[" * 20_000,
        "{}",
        '{"birth": "1"}',
        json.dumps({**HERE._asdict(), "birth": 1}),
        json.dumps({**HERE._asdict(), "birth": "1", "more": 1}),
        json.dumps({**HERE._asdict(), "birth": "1", "port": "8420"}),
        json.dumps({**HERE._asdict(), "birth": "1", "pid": True}),
        json.dumps({**HERE._asdict(), "birth": "1", "pid": -1}),
        json.dumps({**HERE._asdict(), "birth": "", "pid": 10**30}),
        "\x00\xff",
    ],
)
def test_a_damaged_address_file_is_ignored(home: Path, content: str) -> None:
    path = home / "gateway.json"
    path.touch(mode=0o600)
    path.write_text(content)
    assert find_gateway(home) is None
    remove_address(home, HERE.pid)
    assert path.exists()


def test_an_address_that_others_could_write_is_refused(home: Path) -> None:
    write_address(home, HERE)
    (home / "gateway.json").chmod(0o666)
    with pytest.raises(HomeError, match="accessible to other users"):
        find_gateway(home)


def test_an_address_that_cannot_be_written(home: Path) -> None:
    with pytest.raises(HomeError, match=r"gateway\.json cannot be written: no such file"):
        write_address(home / "nowhere", HERE)
    (home / "gateway.json").mkdir()
    with pytest.raises(HomeError, match="cannot be written"):
        write_address(home, HERE)
    assert [path.name for path in home.iterdir()] == ["gateway.json"]


def test_the_module_imports_little(environ: dict[str, str]) -> None:
    heavy = "asyncio dataclasses inspect pydantic secrets subprocess yaml"
    code = f"import sys, internal.config.home; print({{*sys.modules}} & {{*'{heavy}'.split()}})"
    child = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": environ["PATH"]},  # coverage itself would import some of them
        check=True,
        capture_output=True,
        text=True,
    )
    assert child.stdout == "set()\n"


def test_the_home_folder_is_found_in_the_folders_above_it(tmp_path: Path) -> None:
    home = prepare(tmp_path / "a" / "home")
    environ = {"LARKSPUR_HOME": str(home)}
    (tmp_path / "link").symlink_to("a")
    for folder in (home, home.parent, tmp_path, Path("/"), tmp_path / "link"):
        assert find_home_in(str(folder), environ) == home
    for folder in (tmp_path / "other", home / "workspaces"):
        folder.mkdir()
        assert find_home_in(str(folder), environ) is None
    missing = {"LARKSPUR_HOME": str(tmp_path / "new" / "home")}
    assert find_home_in(str(tmp_path), missing) == tmp_path / "new" / "home"
    elsewhere = Path.home()
    assert find_home_in(str(elsewhere), environ) == elsewhere

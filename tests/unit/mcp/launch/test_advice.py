"""Advice about a server that does not start."""

from pathlib import Path
from typing import Any

import pytest

from internal.mcp.definitions import ServerDefinition
from internal.mcp.launch.advice import Circumstances, advise
from internal.mcp.launch.requirements import Requirements
from internal.mcp.limits import ServerFailure

ADD = "larkspur mcp add mine"


def circumstances(
    *, lacking: Requirements | None = None, place: str = "/none", **options: Any
) -> Circumstances:
    entry = {"command": "server", "args": ["x"]}
    definition = ServerDefinition("mine", command="server", args=("x",), **options)
    return Circumstances(definition, entry, lacking, True, place, True)


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("it exited with 1: Error: GITHUB_TOKEN is required", f"{ADD} --env 'GITHUB_TOKEN=…'"),
        ("it exited with 1: KeyError: 'API_KEY'", f"{ADD} --env 'API_KEY=…'"),
        ("it exited with 1: code: ERR_MODULE_NOT_FOUND is required", ""),
        ("it exited with 1: FATAL_THING happened", ""),
        ("it exited with 1: ENOENT, open '/usr/share/none'", ""),
        ("it exited with 1: something else", ""),
    ],
)
def test_a_missing_variable_is_named(said: str, advice: str) -> None:
    found = advise(ServerFailure(said), circumstances())
    assert found == (f"add it with: {advice} -- server x" if advice else "")


def test_a_variable_that_is_set_is_not_asked_for() -> None:
    failure = ServerFailure("it exited with 1: GITHUB_TOKEN is required")
    assert advise(failure, circumstances(env={"GITHUB_TOKEN": "x"})) == ""


def test_a_refused_host_and_a_refused_address_are_different() -> None:
    host = ServerFailure("it exited with 1", refused=("a.example:443",))
    assert advise(host, circumstances()) == f"add it with: {ADD} --network a.example -- server x"
    address = ServerFailure("it exited with 1", refused_addresses=("db.example:5432",))
    assert advise(address, circumstances()) == f"add it with: {ADD} --private -- server x"


@pytest.mark.parametrize(
    ("said", "args", "host"),
    [
        ("connect ECONNREFUSED 127.0.0.1:6379", (), "127.0.0.1:6379"),
        ("getaddrinfo ENOTFOUND db.example", (), "db.example"),
        ("Connection refused", ("redis://ada:canary@localhost:6379/0",), "localhost:6379"),
    ],
)
def test_a_host_that_a_server_without_network_misses_is_named(
    said: str, args: tuple[str, ...], host: str
) -> None:
    found = circumstances()
    definition = ServerDefinition("mine", command="server", args=args)
    told = advise(ServerFailure(said), found._replace(definition=definition))
    assert told == f"add it with: {ADD} --network {host} -- server x"
    allowed = ServerDefinition("mine", command="server", args=args, network=("network(x.example)",))
    assert advise(ServerFailure(said), found._replace(definition=allowed)) == ""


def test_a_downloader_that_is_too_slow_is_tried_again() -> None:
    failure = ServerFailure("it did not start in 30 s")
    definition = ServerDefinition("mine", command="uv", args=("run", "/data/server.py"))
    told = advise(failure, circumstances()._replace(definition=definition))
    assert told == "uv may still be downloading, and keeps what it has: try again"
    assert advise(failure, circumstances()) == ""


def test_a_bridge_to_an_address_is_not_needed() -> None:
    args = ("https://a.example/mcp",)
    definition = ServerDefinition("mine", command="run", args=args, package="mcp-remote@0.1")
    told = advise(
        ServerFailure("it exited with 1"), circumstances()._replace(definition=definition)
    )
    assert told == f"add it with: {ADD} --url https://a.example/mcp, without the bridge"


def test_a_path_that_a_server_misses_is_granted(tmp_path: Path) -> None:
    missing = ServerFailure(f"it exited with 1: ENOENT: no such file, stat '{tmp_path}'")
    assert f"{ADD} --read {tmp_path} -- server x" in advise(missing, circumstances())
    new = ServerFailure(f"it exited with 1: unable to open database file: {tmp_path}/new.db")
    assert f"{ADD} --write {tmp_path} -- server x" in advise(new, circumstances())
    locked = ServerFailure(f"it exited with 1: EROFS: read-only file system, open '{tmp_path}'")
    assert f"{ADD} --write {tmp_path} -- server x" in advise(locked, circumstances())


def test_a_file_among_the_arguments_that_is_still_to_be_made_is_named(tmp_path: Path) -> None:
    failure = ServerFailure("it exited with 1: OSError: [Errno 30] Read-only file system: '/home'")
    args = ("--db-path", f"{tmp_path}/new.db")
    definition = ServerDefinition("mine", command="server", args=args)
    told = advise(failure, circumstances()._replace(definition=definition))
    assert f"{ADD} --write {tmp_path} -- server x" in told


def test_a_reviewed_server_is_removed_first() -> None:
    failure = ServerFailure("it exited with 1", refused=("a.example:443",))
    found = circumstances()._replace(is_replaced=False)
    assert advise(failure, found).startswith("remove it and add it with: larkspur mcp add mine ")


def test_what_is_lacking_comes_before_what_was_said() -> None:
    failure = ServerFailure("it exited with 127", refused=("a.example:443",))
    missing = Requirements("server", missing=("server",))
    told = advise(failure, circumstances(lacking=missing))
    assert told == "there is no program server on this machine"


def test_a_package_for_an_older_sdk_is_added_with_it(tmp_path: Path) -> None:
    packages = tmp_path / "tools" / "server" / "lib" / "python3.12" / "site-packages"
    (packages / "mcp-2.3.0.dist-info").mkdir(parents=True)
    failure = ServerFailure("it exited with 1: AttributeError: 'Server' object has no attribute")
    typed = circumstances(place=str(tmp_path), download=("uvx", "server"))
    assert advise(failure, typed) == (
        "it may be written for version 1 of the SDK: add it with: "
        f"{ADD} -- uvx --with 'mcp<2' server"
    )
    assert advise(failure, circumstances(place=str(tmp_path))) == ""

"""Memory of a gateway and size of an installation."""

import time
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from larkspur.serve import START_SECONDS
from tests.bench.load import Taken, bare_flood, flood, run
from tests.bench.processes import PYTHON, Server, floor, gateway, with_model
from tests.bench.table import Row, Table, most

pytestmark = pytest.mark.bench

MESSAGES = 1000
BODY = b'{"task": "bench:words:10"}'


def _flood(server: Server, count: int) -> Taken:
    port, token = server.port, server.token
    return run(lambda: flood(port, token, "bench:words:10", count=count, at_once=8))


def _bare_flood(server: Server, count: int) -> Taken:
    port = server.port
    return run(lambda: bare_flood(port, "/message", BODY, count=count, at_once=8))


def test_memory(tmp_path: Path, model: str, table: Table) -> None:
    with floor("floor_hello", tmp_path) as server:
        bare = server.rss
    with gateway(tmp_path / "offline") as server:
        offline = server.rss
    with gateway(tmp_path / "home", **with_model(model)) as server:
        _flood(server, 1)
        asked = server.rss
        _flood(server, 63)
        warm = server.rss
        _flood(server, MESSAGES)
        grown = server.rss - warm
    with floor("floor_gateway", tmp_path / "bare", model, str(tmp_path / "bare.db")) as server:
        _bare_flood(server, 64)
        warm = server.rss
        _bare_flood(server, MESSAGES)
        bare_grown = server.rss - warm
    idle, hello = "idle memory of serve", "uvicorn + starlette"
    grows = f"memory growth after {MESSAGES:,} messages"
    table.add(
        Row(f"{idle}, offline", "MB", [offline], [bare], hello, most(70, "ours")),
        Row(f"{idle}, model asked", "MB", [asked], [bare], hello, most(80, "ours")),
        Row(grows, "MB", [grown], [max(bare_grown, 0.1)], "bare gateway", most(15, "ours")),
    )


def test_full_garbage_collections(tmp_path: Path, model: str, table: Table) -> None:
    """Measure the pause of a full collection, which stops every conversation of a ready gateway."""
    output = tmp_path / "collections"
    program = (PYTHON, "-m", "tests.bench.trace_collections", str(output))
    with gateway(tmp_path / "home", program=program, **with_model(model)) as server:
        before = len(_lines(output))
        time.sleep(START_SECONDS)  # a gateway collects nothing before
        while len(_lines(output)) < before + 3:
            _flood(server, 200)
        taken = [float(line) for line in _lines(output)[before:]]
    table.add(Row("longest full garbage collection", "ms", [max(taken)], goal=most(20, "ours")))


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def test_install_size(table: Table) -> None:
    """Measure `uv sync --no-dev` on the disk: our code and its dependencies, without byte code."""
    found: dict[str, int] = {}
    _add("larkspur-gateway", frozenset(), found)
    name = f"install, {len(found)} distributions"
    table.add(Row(name, "MB", [sum(found.values()) / 1_000_000], goal=most(150, "ours")))


def _add(name: str, extras: frozenset[str], found: dict[str, int]) -> None:
    """Add the size of a distribution and of its dependencies with these extras."""
    distribution = metadata.distribution(name)
    files = [Path(str(file.locate())) for file in distribution.files or ()]
    found[distribution.name] = sum(
        file.lstat().st_size for file in files if file.suffix != ".pyc" and file.is_file()
    )
    for line in distribution.requires or ():
        needed = Requirement(line)
        marker = needed.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in {"", *extras}):
            other = metadata.distribution(needed.name).name
            if other not in found or needed.extras:
                _add(needed.name, frozenset(needed.extras), found)

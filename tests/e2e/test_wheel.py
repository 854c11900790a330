"""The built wheel in an environment of its own: complete, small and usable without the sources."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from internal.channels.web.static_page import NOTICES
from tests import ROOT
from tests.support.gateway_process import running_gateway

MAX_WHEEL_BYTES = 5_000_000
NEEDED = (
    "internal/channels/web/dist/index.html",
    "internal/channels/web/dist/THIRD-PARTY-NOTICES.txt",
    "internal/i18n/chat.zh.json",
    "internal/llm/offline/offline.toml",
    "internal/profiles/shipped/coder.yaml",
    "internal/skills/shipped/code-review/SKILL.md",
    "internal/skills/shipped/spreadsheet-analysis/scripts/profile_table.py",
    "internal/storage/migrations/sqlite/0001_initial.sql",
    "internal/storage/migrations/postgres/0017_initial.sql",
    "internal/simulators/lark/static/",
)
NOT_BUNDLED = ("commander", "use-sync-external-store")
"""Katex's command line, and a shim for old versions of React: no module of them is in the page."""
OF_THE_BUILD = {"rolldown", "vite", "tailwindcss"}
"""Tools of the build that put code of their own into the page."""
UV = shutil.which("uv") or str(ROOT / ".uv/bin/uv")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution as an index would offer it."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([UV, "build", "--quiet", "--offline", "-o", folder], cwd=ROOT, check=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def larkspur(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed command; its environment has the locked dependencies and nothing else."""
    environment = tmp_path_factory.mktemp("installed") / "venv"
    variables = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(environment)}  # noqa: TID251 - for uv
    for command in (
        ("sync", "--frozen", "--no-dev", "--no-install-project"),
        ("pip", "install", "--no-deps", "--python", str(environment), str(wheel)),
    ):
        arguments = [UV, *command, "--quiet", "--offline"]
        subprocess.run(arguments, cwd=ROOT, env=variables, check=True)
    return environment / "bin/larkspur"


def test_the_wheel_holds_what_runs_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        page = archive.read("internal/channels/web/dist/index.html").decode()
        metadata = archive.read(next(n for n in names if n.endswith("/METADATA"))).decode()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {
        *("larkspur", "internal", "larkspur_gateway"),
    }
    assert [needed for needed in NEEDED if not any(n.startswith(needed) for n in names)] == []
    loaded = re.findall(r'(?:src|href)="\.?/(assets/[^"]+)"', page)
    assert loaded
    assert [a for a in loaded if f"internal/channels/web/dist/{a}" not in names] == []
    assert [n for n in names if n.endswith((".tsx", ".pyc", ".map")) or "/test" in n] == []
    assert wheel.stat().st_size < MAX_WHEEL_BYTES
    for field in (
        "Name: larkspur-gateway",
        "License-Expression: MIT AND ",
        "Requires-Python: >=3.11",
        "# Larkspur",
    ):
        assert field in metadata


def test_the_wheel_has_the_notices_of_all_code_of_others(wheel: Path) -> None:
    """Every package in the built page is named with its licence, and none under another package.

    The lock file lists these packages; the build records the packages in its bundles.
    """
    with zipfile.ZipFile(wheel) as archive:
        notices = archive.read(f"internal/channels/web/dist/{NOTICES}").decode()
        metadata = archive.read(
            next(n for n in archive.namelist() if n.endswith("/METADATA"))
        ).decode()
    rule = f"\n\n{'-' * 78}\n\n"
    named = {}
    for notice in notices.split(rule)[1:]:
        title, licence, *_ = notice.splitlines()
        named[title.rpartition(" ")[0]] = licence.removeprefix("Licence: ")
    locked = json.loads((ROOT / "web/package-lock.json").read_text())["packages"]
    needed = {
        path.rpartition("node_modules/")[2]: package["license"]
        for path, package in locked.items()
        if path and not {"dev", "devOptional", "optional"} & package.keys()
    }
    for name in NOT_BUNDLED:
        del needed[name]
    assert {name: named.get(name) for name in needed} == needed
    assert set(named) - set(needed) == OF_THE_BUILD
    expression = re.search(r"^License-Expression: (.*)$", metadata, re.MULTILINE)
    assert expression is not None
    declared = expression[1].split(" AND ")
    assert [one for one in named.values() if " AND ".join(declared).find(one.strip("()")) < 0] == []


@pytest.mark.slow
@pytest.mark.parametrize("way", ["uv tool install", "pipx install", "uvx"])
async def test_the_wheel_is_installed_as_the_documents_say(
    wheel: Path, tmp_path: Path, environ: dict[str, str], way: str
) -> None:
    """With the newest dependencies that an index has: these ways do not know the lock file."""
    folders = {
        name: str(tmp_path / name)
        for name in ("UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "PIPX_HOME", "PIPX_BIN_DIR")
    }
    passed = {k: v for k, v in os.environ.items() if k.startswith(("PIP_", "SSL_", "UV_CACHE"))}  # noqa: TID251 - for pip
    variables = passed | environ | folders
    pipx = Path(sys.executable).with_name("pipx")
    commands: dict[str, tuple[list[str | Path], ...]] = {
        "uv tool install": (
            [UV, "tool", "install", "--python", sys.executable, wheel],
            [f"{folders['UV_TOOL_BIN_DIR']}/larkspur", "--version"],
        ),
        "pipx install": (
            [pipx, "install", "--python", sys.executable, wheel],
            [f"{folders['PIPX_BIN_DIR']}/larkspur", "--version"],
        ),
        "uvx": (
            [
                UV,
                "tool",
                "run",
                "--python",
                sys.executable,
                "--from",
                wheel,
                "larkspur",
                "--version",
            ],
        ),
    }
    printed = ""
    for command in commands[way]:
        done = await asyncio.to_thread(
            subprocess.run, command, env=variables, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        printed = done.stdout
    assert printed.startswith("larkspur 0.")


@pytest.mark.slow
async def test_the_installed_command_works_without_the_sources(
    larkspur: Path, environ: dict[str, str], home: Path, work: Path
) -> None:
    async def output(*command: str | Path) -> str:
        process = await asyncio.create_subprocess_exec(
            *command, env=environ, cwd=work, stdout=asyncio.subprocess.PIPE
        )
        text, _ = await process.communicate()
        assert process.returncode == 0
        return text.decode()

    assert (await output(larkspur, "--version")).startswith("larkspur ")
    places = "import cmd, pdb, internal; print(cmd.Cmd.__module__, internal.__file__)"
    standard, _, installed = (
        (await output(larkspur.with_name("python"), "-c", places)).strip().partition(" ")
    )
    assert standard == "cmd"
    assert Path(installed).is_relative_to(larkspur.parents[1])
    assert "42" in await output(larkspur, "-p", "what is 6*7")
    (work / "a.md").write_text("a lark sings\n", encoding="utf-8")
    assert "a.md:1" in await output(larkspur, "-p", "search for lark in the files")

    serve = (larkspur, "serve", "--lark-sim", "--port", "0")
    async with running_gateway(environ, home, *serve) as running:
        page = await running.client.request("GET", "/")
        assert (page.status, b"<div id=" in page.body) == (200, True)
        simulator = (await running.logged("lark ")).split()[1]
        assert "#key=" in simulator
        await running.logged("connection connected")

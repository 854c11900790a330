"""The built wheel in an environment of its own: complete, small and usable without the sources."""

import asyncio
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.gateway_process import running_gateway

MAX_WHEEL_BYTES = 4_000_000
NEEDED = (
    "internal/channels/web/dist/index.html",
    "internal/i18n/chat.zh.json",
    "internal/llm/offline/offline.toml",
    "internal/profiles/shipped/coder.yaml",
    "internal/skills/shipped/code-review/SKILL.md",
    "internal/skills/shipped/spreadsheet-analysis/scripts/profile_table.py",
    "internal/storage/migrations/sqlite/0001_initial.sql",
    "internal/storage/migrations/postgres/0017_initial.sql",
    "internal/simulators/lark/static/",
)
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
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"larkspur", "internal"}
    assert [needed for needed in NEEDED if not any(n.startswith(needed) for n in names)] == []
    loaded = re.findall(r'(?:src|href)="\.?/(assets/[^"]+)"', page)
    assert loaded
    assert [a for a in loaded if f"internal/channels/web/dist/{a}" not in names] == []
    assert [n for n in names if n.endswith((".tsx", ".pyc", ".map")) or "/test" in n] == []
    assert wheel.stat().st_size < MAX_WHEEL_BYTES
    for field in ("License-Expression: MIT", "Requires-Python: >=3.11", "# Larkspur"):
        assert field in metadata


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

"""The Dockerfile: checked, its builder stage carried out, and built where a builder works."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

from internal.config.setting_keys import VARIABLES
from tests import ROOT
from tests.support.dockerfile import Stage, carry_out, read_stages
from tests.support.gateway_process import running_gateway
from tests.support.web_app import healthy, open_web_app

UV = shutil.which("uv") or str(ROOT / ".uv/bin/uv")
PAGE = ROOT / "internal/channels/web/dist"
CHECK = ROOT / "configs/deploy/check_health.py"
STAGES = read_stages(ROOT / "Dockerfile")
IMAGE = STAGES[-1]


def stage(name: str) -> Stage:
    [found] = [each for each in STAGES if each.name == name]
    return found


def builder() -> str:
    """Return a program that can build images here, or ""."""
    for name in ("docker", "podman", "buildah"):
        program = shutil.which(name)
        if (
            program
            and subprocess.run([program, "info"], capture_output=True, check=False).returncode == 0
        ):
            return program
    return ""


async def check_health(port: int) -> tuple[int | None, str]:
    """Return the exit code and the output of the health check of the image."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, CHECK, str(port), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode().strip()


def test_the_linter_finds_nothing() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    checked = subprocess.run(
        [linter, "--format", "json", ROOT / "Dockerfile"], capture_output=True, check=False
    )
    assert json.loads(checked.stdout) == []
    assert checked.returncode == 0


def test_the_linter_finds_mistakes(tmp_path: Path) -> None:
    broken = tmp_path / "Dockerfile"
    broken.write_text("FROM debian:latest\nRUN cd /tmp && sudo make\nWORKDIR relative\n")
    linter = Path(sys.executable).with_name("hadolint")
    checked = subprocess.run([linter, "--format", "json", broken], capture_output=True, check=False)
    codes = {each["code"] for each in json.loads(checked.stdout)}
    assert codes >= {"DL3000", "DL3003", "DL3004", "DL3007"}


def test_the_image_is_small_and_runs_as_a_user_of_its_own() -> None:
    assert IMAGE.base.startswith("python:")
    assert IMAGE.base.endswith("-slim-bookworm")
    assert stage("builder").base == IMAGE.base  # the environment needs the same Python at its path
    [user] = IMAGE.of("USER")
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user.text)
    [install] = IMAGE.of("RUN")
    assert f"--uid {user.text.split(':')[0]} " in install.text
    assert "--mode=0700 /data" in install.text  # a new volume gets the owner and mode of the folder
    for package in ("bubblewrap", "ripgrep", "git", "ca-certificates"):
        assert f" {package}" in install.text
    assert [each.text for each in IMAGE.of("STOPSIGNAL")] == ["SIGTERM"]
    assert [json.loads(each.text) for each in IMAGE.of("VOLUME")] == [["/data"]]
    [health] = IMAGE.of("HEALTHCHECK")
    script = json.loads(health.text.partition("CMD ")[2])[-1]
    [copied] = [each for each in IMAGE.of("COPY") if not each.source_stage]
    assert copied.words == [str(CHECK.relative_to(ROOT)), script]
    [environment] = [each for each in IMAGE.of("COPY") if each.source_stage == "builder"]
    assert environment.words[0] == "/opt/larkspur"
    assert "UV_PROJECT_ENVIRONMENT=/opt/larkspur" in stage("builder").of("ENV")[0].words


def test_layers_hold_no_secret() -> None:
    instructions = [each for one in STAGES for each in one.instructions]
    names = [
        word.partition("=")[0]
        for each in instructions
        if each.name in {"ENV", "ARG"}
        for word in each.words
    ]
    assert names
    assert [name for name in names if re.search("KEY|SECRET|TOKEN|PASS", name)] == []
    assert [name for name in names if name in VARIABLES] == []
    ignored = [
        line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] != "#"
    ]
    assert ignored[0] == "*"
    context = {line[1:] for line in ignored if line.startswith("!")}
    sources = [
        source
        for each in instructions
        if each.name == "COPY" and not each.source_stage
        for source in each.words[:-1]
    ]
    assert {source.partition("/")[0] for source in sources} == context
    assert {"**/*.env", "**/node_modules", "internal/channels/web/dist"} <= set(ignored)


def test_versions_and_commands_are_those_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    version = re.search(r"^UV_VERSION := (.*)$", makefile, re.MULTILINE)
    assert version
    [uv] = [each for each in stage("builder").of("COPY") if "/uv:" in each.source_stage]
    assert uv.source_stage == f"ghcr.io/astral-sh/uv:{version[1]}"
    install, build = (each.text for each in stage("page").of("RUN"))
    assert install.startswith("npm ci --ignore-scripts")
    assert "$(NPM) ci --ignore-scripts" in makefile
    assert build == "npm run build -- --logLevel=warn"
    assert "$(NPM) --silent run build -- --logLevel=warn" in makefile
    needed = json.loads((ROOT / "web/package.json").read_text())["engines"]["node"]
    assert needed == ">=22.12"
    assert stage("page").base == "node:24-bookworm-slim"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program installed by the builder stage, with the sources removed."""
    root = tmp_path_factory.mktemp("image")
    home = Path.home()  # of the cache: nothing is downloaded
    environ = {
        "PATH": f"{Path(UV).parent}:/usr/bin:/bin",
        "HOME": str(home),
        "UV_OFFLINE": "1",
        "UV_PYTHON": sys.executable,
    }
    carry_out(stage("builder"), root, environ, [Path(UV), PAGE])
    shutil.rmtree(root / "src")
    return root / "opt/larkspur/bin/larkspur"


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_the_builder_stage_installs_a_gateway(
    installed: Path, environ: dict[str, str], home: Path, work: Path
) -> None:
    [entry] = IMAGE.of("ENTRYPOINT")
    [command] = IMAGE.of("CMD")
    assert [*json.loads(entry.text), *json.loads(command.text)] == ["larkspur", "serve"]
    code = (
        "import asyncpg, internal, mcp, minio; from pathlib import Path;"
        "print(Path(internal.__cached__).exists(), internal.__file__)"
    )
    process = await asyncio.create_subprocess_exec(
        *(installed.with_name("python"), "-c", code),
        cwd=work,
        env=environ,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    is_compiled, _, found = output.decode().strip().partition(" ")
    assert (is_compiled, Path(found).is_relative_to(installed.parents[1])) == ("True", True)
    absent = [name for name in ("pytest", "ruff", "mypy") if installed.with_name(name).exists()]
    assert absent == []
    notices = (installed.parents[1] / "THIRD-PARTY-NOTICES.txt").read_text()
    for package in ("starlette", "aiohttp", "lark-oapi", "mcp"):
        assert f"\n{package}\n" in f"\n{notices}", package
    assert "Apache License" in notices

    async with running_gateway(environ, home, installed, "serve", "--port", "0") as running:
        page = await running.client.request("GET", "/")
        assert (page.status, b"<div id=" in page.body) == (200, True)
        assert await check_health(running.client.port) == (0, "ok")
        port = running.client.port
    code_after, said = await check_health(port)
    assert (code_after, said.partition(":")[0]) == (1, f"no answer on port {port}")


@pytest.mark.parametrize(("status", "code"), [("ok", 0), ("degraded", 0), ("failing", 1)])
async def test_a_container_is_unhealthy_when_its_gateway_fails(
    tmp_path: Path, status: str, code: int
) -> None:
    async with open_web_app(tmp_path) as app:
        app.health.append(structs.replace(healthy(), status=status))
        assert await check_health(app.client.port) == (code, status)


@pytest.mark.image  # it downloads images and takes minutes
@pytest.mark.timeout(1800)
def test_the_image_is_built_and_starts() -> None:
    program = builder()
    assert program, "neither docker, podman nor buildah works here"
    name = f"larkspur-test-{os.getpid()}"
    subprocess.run([program, "build", "--tag", name, ROOT], check=True)
    runs = [program, "run", "--rm", "--entrypoint", "", name]
    try:
        if Path(program).name == "buildah":  # it runs commands in containers of their own
            made = said_by(program, "from", "--pull-never", f"localhost/{name}:latest")
            runs = [program, "run", made, "--"]
        assert said_by(*runs, "larkspur", "--version").startswith("larkspur ")
        assert said_by(*runs, "id", "--user") == IMAGE.of("USER")[0].text.partition(":")[0]
        assert said_by(*runs, "stat", "--format", "%a %U", "/data") == "700 larkspur"
        assert "fail " not in said_by(*runs, "larkspur", "doctor")
    finally:
        subprocess.run([program, "rmi", "--force", name], check=False)


def said_by(*argv: str) -> str:
    """Return the output of a command that succeeds."""
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return done.stdout.strip()

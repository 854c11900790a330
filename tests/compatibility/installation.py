"""Installation of packages from the registries, each client in a folder of its own.

The folders are outside of the tree and kept, so that the next run downloads nothing.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests import ROOT
from tests.compatibility.declarations import Declaration

INSTALL_SECONDS = 480.0
_MANIFEST = """[package]
name = "client"
version = "0.0.0"
edition = "2021"

[[bin]]
name = "client"
path = "main.rs"

[dependencies]
"""
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>client</groupId><artifactId>client</artifactId><version>0</version>
  <properties><maven.compiler.release>17</maven.compiler.release></properties>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
)


class NotInstalled(Exception):
    """A package could not be installed; the message is the end of its installer's output."""


async def run(
    *argv: str | Path, folder: Path, environ: Mapping[str, str], seconds: float
) -> tuple[int, str]:
    """Run a program at a low priority; return its exit code and its output.

    Raises:
        TimeoutError: The program did not end in time; it and its children are killed.
    """
    process = await asyncio.create_subprocess_exec(
        *("nice", "-n", "15", *argv),
        cwd=folder,
        env=environ,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        start_new_session=True,
        limit=16 * 1024 * 1024,
    )
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate()
    finally:
        await end_group(process)
    return process.returncode or 0, output.decode(errors="replace")


async def end_group(process: asyncio.subprocess.Process) -> None:
    """Kill a process with its process group, and wait for it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def uv() -> str:
    """Return the path of uv, which `make setup` installs where the machine has none."""
    return shutil.which("uv") or str(ROOT / ".uv/bin/uv")


async def installed(
    declared: Declaration, cache: Path, environ: Mapping[str, str]
) -> tuple[Path, list[str | Path]]:
    """Install a client unless it is there; return its folder and the command that runs it.

    Raises:
        NotInstalled: The registry or the build refuses, or takes too long.
    """
    slug = re.sub(r"\W+", "-", declared.client.lower()).strip("-")
    folder = cache / "clients" / declared.language / slug
    folder.mkdir(parents=True, exist_ok=True)
    marker, wanted = folder / "installed.txt", "\n".join(declared.packages)
    if not (marker.exists() and marker.read_text() == wanted):
        for step in _STEPS[declared.language](declared, folder):
            try:
                code, output = await run(
                    *step, folder=folder, environ=environ, seconds=INSTALL_SECONDS
                )
            except TimeoutError:
                raise NotInstalled(f"not installed in {INSTALL_SECONDS:.0f} seconds") from None
            if code:
                raise NotInstalled(output[-2000:])
        marker.write_text(wanted)
    return folder, await _built(declared, folder, environ)


Steps = list[tuple[str | Path, ...]]


def _python(declared: Declaration, folder: Path) -> Steps:
    """Return the steps for a Python program, which may drive a command of `npm:…` or `go:…`."""
    kinds: dict[str, list[str]] = {"npm": [], "go": [], "": []}
    for package in declared.packages:
        kind, _, name = (
            package.rpartition(":") if package[:4] in {"npm:", "go:g"} else ("", "", package)
        )
        kinds[kind].append(name)
    steps: Steps = [
        (uv(), "venv", "--quiet", "--clear", "--python", sys.executable, folder / "venv")
    ]
    if kinds[""]:
        python = folder / "venv/bin/python"
        steps += [(uv(), "pip", "install", "--quiet", "--python", python, *kinds[""])]
    if kinds["npm"]:
        steps += _npm(folder, kinds["npm"])
    return steps + [("env", f"GOBIN={folder}/bin", "go", "install", each) for each in kinds["go"]]


def _npm(folder: Path, packages: list[str]) -> Steps:
    (folder / "package.json").write_text(json.dumps({"private": True, "type": "module"}))
    quiet = ("--no-audit", "--no-fund", "--loglevel=error")
    return [("npm", "install", *quiet, *packages)]


def _node(declared: Declaration, folder: Path) -> Steps:
    return _npm(folder, list(declared.packages))


def _go(declared: Declaration, folder: Path) -> Steps:
    (folder / "go.mod").unlink(missing_ok=True)
    return [("go", "mod", "init", "client"), ("go", "get", *declared.packages)]


def _rust(declared: Declaration, folder: Path) -> Steps:
    # Each package is `name@version`, with its features behind `+`.
    lines = []
    for package in declared.packages:
        name, _, rest = package.partition("@")
        version, *features = rest.split("+")
        lines.append(f'{name} = {{ version = "={version}", features = {json.dumps(features)} }}')
    (folder / "Cargo.toml").write_text(_MANIFEST + "\n".join(lines) + "\n")
    return [("cargo", "fetch", "--quiet")]


def _java(declared: Declaration, folder: Path) -> Steps:
    dependencies = "".join(_DEPENDENCY.format(*each.split(":")) for each in declared.packages)
    (folder / "pom.xml").write_text(_POM.format(dependencies=dependencies))
    copy = "dependency:copy-dependencies"
    return [("mvn", "-q", "-B", copy, f"-DoutputDirectory={folder}/jars")]


_STEPS = {"python": _python, "node": _node, "go": _go, "rust": _rust, "java": _java}


async def _built(
    declared: Declaration, folder: Path, environ: Mapping[str, str]
) -> list[str | Path]:
    steps: Steps
    match declared.language:
        case "python":
            return [folder / "venv/bin/python", "-P", declared.program]
        case "node":
            # Node resolves packages from the folder of the program.
            for path in declared.program.parent.glob("*.mjs"):
                shutil.copy(path, folder / path.name)
            return ["node", folder / declared.program.name]
        case "go":
            shutil.copy(declared.program, folder / "main.go")
            shutil.copy(declared.program.parent / "scenarios.go", folder / "scenarios.go")
            steps = [("go", "mod", "tidy"), ("go", "build", "-o", "client", ".")]
            command: list[str | Path] = [folder / "client"]
        case "rust":
            shutil.copy(declared.program, folder / "main.rs")
            shutil.copy(declared.program.parent / "scenarios.rs", folder / "scenarios.rs")
            steps = [("cargo", "build", "--quiet")]
            command = [folder / "target/debug/client"]
        case _:
            shutil.copy(declared.program, folder / "Client.java")
            shutil.copy(declared.program.parent / "Scenarios.java", folder / "Scenarios.java")
            jars = f"{folder}/jars/*"
            steps = [("javac", "-cp", jars, "-d", ".", "Client.java", "Scenarios.java")]
            command = ["java", "-cp", f"{folder}:{jars}", "Client"]
    for step in steps:
        code, output = await run(*step, folder=folder, environ=environ, seconds=INSTALL_SECONDS)
        if code:
            raise NotInstalled(output[-2000:])
    return command

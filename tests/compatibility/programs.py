"""Installs packages from the registries for a program that uses them."""

import asyncio
import shutil
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Sequence
from pathlib import Path


async def install(program: Path, packages: Sequence[str], folder: Path) -> list[str]:
    """Install packages into a folder, of npm or PyPI as the program needs them.

    Returns:
        The command that runs a copy of the program there.
    """
    # Node.js looks for packages beside the program
    target = folder / program.name
    await asyncio.to_thread(shutil.copy, program, target)
    if program.suffix == ".py":
        await _run(folder, sys.executable, "-m", "venv", "venv")
        python = str(folder / "venv/bin/python")
        await _run(folder, python, "-m", "pip", "install", "--quiet", *packages)
        return [python, str(target)]
    await _run(folder, "npm", "init", "--yes")
    await _run(folder, "npm", "install", "--no-audit", "--no-fund", *packages)
    return ["node", str(target)]


async def _run(folder: Path, *argv: str) -> None:
    process = await asyncio.create_subprocess_exec(*argv, cwd=folder, stdout=PIPE, stderr=STDOUT)
    output, _ = await process.communicate()
    assert process.returncode == 0, output

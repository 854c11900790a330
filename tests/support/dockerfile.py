"""Reads a Dockerfile, and carries out a stage of it in a folder without a container."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests import ROOT


class Instruction(NamedTuple):
    """One instruction, its continuation lines joined."""

    name: str
    text: str

    @property
    def words(self) -> list[str]:
        return [word for word in shlex.split(self.text) if not word.startswith("--")]

    @property
    def source_stage(self) -> str:
        """The stage or image that a COPY takes its files from; "" for the build context."""
        found = re.match(r"--from=(\S+)", self.text)
        return found[1] if found else ""


class Stage(NamedTuple):
    name: str
    base: str
    instructions: list[Instruction]

    def of(self, name: str) -> list[Instruction]:
        return [each for each in self.instructions if each.name == name]


def read_stages(path: Path) -> list[Stage]:
    """Return the stages of a Dockerfile in order; the last one is the image."""
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    stages: list[Stage] = []
    for line in filter(None, joined.splitlines()):
        name, _, text = line.partition(" ")
        if name == "FROM":
            base, _, alias = text.partition(" AS ")
            stages.append(Stage(alias, base, []))
        else:
            stages[-1].instructions.append(Instruction(name, text))
    return stages


def carry_out(stage: Stage, root: Path, environ: Mapping[str, str], outputs: list[Path]) -> None:
    """Run the instructions of a stage below `root` instead of /.

    Args:
        stage: Only WORKDIR, ENV, COPY and RUN are known.
        root: A folder; absolute paths of WORKDIR and ENV are below it.
        environ: The environment of the commands; ENV is added.
        outputs: What COPY takes from other stages, in order.
    """
    variables, folder, copies = dict(environ), root, iter(outputs)
    for each in stage.instructions:
        match each.name:
            case "WORKDIR":
                folder = root / each.text.lstrip("/")
                folder.mkdir(parents=True)
            case "ENV":
                for word in each.words:
                    name, _, value = word.partition("=")
                    variables[name] = f"{root}{value}" if value.startswith("/") else value
            case "COPY":
                *sources, target = each.words
                if each.source_stage:
                    _copy(
                        next(copies),
                        root / target.lstrip("/") if target[0] == "/" else folder / target,
                    )
                else:
                    for source in sources:
                        _copy(ROOT / source, folder / (source if target == "./" else target))
            case "RUN":
                subprocess.run(["sh", "-ec", each.text], cwd=folder, env=variables, check=True)
            case _:
                raise AssertionError(f"unknown instruction {each.name}")


def _copy(source: Path, target: Path) -> None:
    """Copy as Docker does: without the files excluded by .dockerignore."""
    assert source.exists(), f"{source} is missing; run make page"
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_file():
        shutil.copy(source, target)
        return
    left_out = shutil.ignore_patterns("__pycache__", "node_modules", "*.env")
    page = os.fspath(ROOT / "internal/channels/web/dist")

    def ignore(folder: str, names: list[str]) -> set[str]:
        inner = {name for name in names if os.path.join(folder, name) == page}  # noqa: PTH118 - text
        return left_out(folder, names) | (inner if os.fspath(source) != page else set())

    shutil.copytree(source, target, ignore=ignore, dirs_exist_ok=True)

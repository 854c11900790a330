"""The programs behind shims, found in real folders."""

from pathlib import Path

import pytest

from internal.mcp.launch.shims import resolve_shim


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "manager"


def test_the_chosen_version_of_pyenv_is_taken(root: Path) -> None:
    shim = write(root / "shims" / "uvx", "#!/usr/bin/env bash\n")
    older = write(root / "versions" / "3.11.7" / "bin" / "uvx")
    newest = write(root / "versions" / "3.13.0" / "bin" / "uvx")
    assert resolve_shim(shim) == newest
    write(root / "version", "3.11.7\n")
    assert resolve_shim(shim) == older


def test_the_version_in_a_shim_of_asdf_is_taken(root: Path) -> None:
    write(root / "installs" / "nodejs" / "22.1.0" / "bin" / "npx")
    named = write(root / "installs" / "nodejs" / "9.11.0" / "bin" / "npx")
    shim = write(root / "shims" / "npx", "#!/bin/sh\n# asdf-plugin: nodejs 9.11.0\n")
    assert resolve_shim(shim) == named


def test_the_newest_version_of_volta_is_taken(root: Path) -> None:
    shim = write(root / "bin" / "npx")
    write(root / "tools" / "image" / "node" / "9.1.0" / "bin" / "npx")
    newest = write(root / "tools" / "image" / "node" / "20.1.0" / "bin" / "npx")
    assert resolve_shim(shim) == newest


def test_other_programs_stay(root: Path) -> None:
    program = write(root / "bin" / "npx")
    assert resolve_shim(program) == program
    without = write(root / "shims" / "npx")
    assert resolve_shim(without) == without

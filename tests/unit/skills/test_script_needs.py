"""Requirements of the scripts of a skill."""

from pathlib import Path

from internal.skills.script_needs import CommandMeans, ScriptNeeds

SCRIPT = """#!/usr/bin/env -S python3 -I
import json, helper
import subprocess
from PIL import Image
from urllib.request import urlopen
import pandas as pd

try:
    import tqdm
except ImportError:
    tqdm = None

def convert():
    import openpyxl
    subprocess.run(["soffice-of-the-test", "--headless"])
    subprocess.run([program, "x"])
"""
SHELL = """#!/bin/bash
set -e
help_me() { echo "$1"; }
help_me now
if command -v ffmpeg-of-the-test; then ffmpeg-of-the-test -i x; fi
curl -s https://example.com | cat
./own.sh
"""


def test_programs_packages_and_the_network_are_named_with_their_settings(tmp_path: Path) -> None:
    needs = ScriptNeeds()
    needs.add("scripts/run.py", SCRIPT.encode())
    needs.add("scripts/helper.py", b"import pandas")
    needs.add("scripts/go", SHELL.encode())
    needs.add("README.md", b"import nothing")
    needs.add("broken.py", b"import (")
    programs, elsewhere, packages, network = needs.lacks(
        CommandMeans(path(tmp_path / "a", "python3", "bash", "cat"), path(tmp_path / "b", "curl"))
    )
    assert "need ffmpeg-of-the-test, soffice-of-the-test, which" in programs
    assert programs.endswith("in sandbox.read_only.")
    assert (
        f"need curl, which isolated commands do not see: name the folder of {tmp_path}" in elsewhere
    )
    assert "packages openpyxl, pandas, pillow, which" in packages
    assert packages.endswith("in the file of sandbox.packages.")
    assert "the network (curl, urllib.request)" in network


def test_what_commands_have_is_not_lacking(tmp_path: Path) -> None:
    needs = ScriptNeeds()
    needs.add("run.py", b"import yaml, requests")
    found = path(tmp_path / "usr" / "bin", "python3")
    (tmp_path / "usr" / "lib" / "python3" / "dist-packages" / "PyYAML-6.0.dist-info").mkdir(
        parents=True
    )
    means = CommandMeans(found, packages=frozenset({"requests"}), reaches_hosts=True)
    assert needs.lacks(means) == []
    assert ScriptNeeds().lacks(CommandMeans("")) == []


def path(folder: Path, *programs: str) -> str:
    """Return the PATH of a folder with these programs."""
    folder.mkdir(parents=True)
    for each in programs:
        (folder / each).write_text("")
        (folder / each).chmod(0o755)
    return str(folder)

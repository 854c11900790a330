"""Git repositories as a person makes them."""

import os
import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    """Run git as a person does, and return its output."""
    identity = {"GIT_CONFIG_GLOBAL": "/dev/null", "PATH": os.defpath, "HOME": str(folder)}
    named = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    command = ["git", "-c", "init.defaultBranch=main", *named, *arguments]
    done = subprocess.run(command, cwd=folder, env=identity, check=True, capture_output=True)
    return done.stdout.decode().strip()


def make_repository(folder: Path, **files: str) -> Path:
    """Make a repository with one commit of some files: names with `_` for `.`, and contents."""
    folder.mkdir()
    git(folder, "init", "--quiet")
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "First")
    return folder

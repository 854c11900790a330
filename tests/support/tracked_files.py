"""The files of the repository."""

import subprocess
from pathlib import Path

from tests import ROOT


def tracked_files() -> list[Path]:
    """Return every file that is in the repository or about to be."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    names = listing.stdout.decode().split("\0")
    return sorted({ROOT / name for name in names if name and (ROOT / name).is_file()})

"""The sample files that Python packages ship in their source distributions."""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests import ROOT

PUBLIC_SAMPLES = ROOT / "build" / "document-samples"
"""Folder of the unpacked distributions, once they were downloaded."""
PACKAGES = (
    "odfpy==1.4.1",
    "pdfplumber==0.11.10",
    "pypdf==7.1.1",
    "python-docx==1.2.0",
    "python-pptx==1.0.2",
    "xlsx2csv==0.8.6",
)
_BUILD_PACKAGES = ("flit_core", "hatchling", "poetry-core", "setuptools", "wheel")
_PIP_SECONDS = 240


def fetch_samples() -> None:
    """Download and unpack the distributions, with pip in an environment of its own.

    Raises:
        OSError, subprocess.SubprocessError: they cannot be downloaded; nothing is left.
    """
    with tempfile.TemporaryDirectory(prefix="larkspur-samples-") as name:
        folder = Path(name)
        python = str(folder / "venv" / "bin" / "python")
        pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check")
        _run(sys.executable, "-m", "venv", str(folder / "venv"))
        _run(*pip, "install", *_BUILD_PACKAGES)
        options = ("--no-deps", "--no-binary=:all:", "--no-build-isolation")
        _run(*pip, "download", *options, f"--dest={folder / 'files'}", *PACKAGES)
        for archive in sorted((folder / "files").glob("*.tar.gz")):
            with tarfile.open(archive) as packed:
                packed.extractall(folder / "unpacked", filter="data")
        PUBLIC_SAMPLES.parent.mkdir(exist_ok=True)
        shutil.move(folder / "unpacked", PUBLIC_SAMPLES)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=_PIP_SECONDS)

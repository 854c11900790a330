"""Commands of a terminal whose registry has one channel more."""

import asyncio
import sys
from pathlib import Path

from tests import ROOT
from tests.support.lark_process import RUN


async def larkspur(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run a command of the terminal; return its exit code, standard output and standard error."""
    environ = {
        "LARKSPUR_HOME": str(folder / "home"),
        "HOME": str(folder),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}",
        "LANG": "C.UTF-8",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", RUN, *arguments),
        cwd=folder,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()

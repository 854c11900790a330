"""Commands of a terminal that ask its gateway."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from tests.support.gateway_process import LARKSPUR


async def larkspur(environ: Mapping[str, str], folder: Path, command: str) -> tuple[int, str]:
    """Run a command; return its exit code and its output."""
    process = await asyncio.create_subprocess_exec(
        *(LARKSPUR, command),
        env={**environ, "LARKSPUR_LLM__PROVIDER": "offline"},
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()

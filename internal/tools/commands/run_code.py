"""The tool run_code: run a program of a few languages in the sandbox."""

from typing import Annotated, Any

import msgspec

from internal.agent.domain.errors import ToolError
from internal.agent.domain.permissions.targets import CodeTarget
from internal.agent.ports.sandbox import RUNTIME_PROGRAMS, Runtime
from internal.agent.ports.tools import ToolOutcome
from internal.tools.commands.execution import (
    ACCESS_TARGETS,
    KILL_GRACE_SECONDS,
    MAX_TIMEOUT_SECONDS,
    Hosts,
    ReadPaths,
    WritePaths,
    check_access,
    run_session_command,
)
from internal.tools.tool import ToolContext, tool

# All read the code from standard input, which has no limit on its size; bash would read commands
# from it piece by piece, and the commands would read the rest of the code.
_ARGUMENTS: dict[Runtime, tuple[str, ...]] = {
    "python": ("-",),
    "node": ("-",),
    "bash": ("--noprofile", "--norc", "-c", 'code=$(cat); exec </dev/null; eval "$code"'),
}


async def _check_call(context: ToolContext, language: Runtime, **access: Any) -> str:
    """Check a call before a person is asked about it; see `check_access`.

    Raises:
        ToolError: there is no program for the language, or the call cannot get what it needs.
    """
    found = context.sandbox.capabilities.runtimes
    if language not in found:
        names = " and ".join(found) or "no language"
        raise ToolError(f"there is no {language} in the sandbox; run_code has {names} here")
    return await check_access(context, **access)


@tool(
    risk="exec",
    targets=(CodeTarget("code"), *ACCESS_TARGETS),
    title={"en": "Run code", "zh": "运行代码"},
    timeout_seconds=MAX_TIMEOUT_SECONDS + KILL_GRACE_SECONDS,
    sandboxed=True,
    preview=_check_call,
)
async def run_code(  # noqa: PLR0917  # the arguments of the model
    context: ToolContext,
    language: Runtime,
    code: Annotated[str, msgspec.Meta(min_length=1), "The program."],
    timeout_seconds: Annotated[
        int, msgspec.Meta(ge=1, le=MAX_TIMEOUT_SECONDS), "End the program after so many seconds."
    ] = 120,
    network: Hosts = [],  # noqa: B006  # never changed
    read_paths: ReadPaths = [],  # noqa: B006  # never changed
    write_paths: WritePaths = [],  # noqa: B006  # never changed
) -> ToolOutcome:
    """Run a program in the workspace and return its output and exit code.

    Every call is a new process: no variable is kept. Files that it writes to the output folder are
    given to the person.
    """
    access = {"network": network, "read_paths": read_paths, "write_paths": write_paths}
    await _check_call(context, language, **access)
    argv = (RUNTIME_PROGRAMS[language], *_ARGUMENTS[language])
    stdin = code.encode("utf-8", "replace")
    return await run_session_command(context, argv, timeout_seconds, stdin)

"""The tools for background commands: read their output, stop them."""

from typing import Annotated

import msgspec

from internal.agent.domain.errors import NotFound, ToolError
from internal.agent.ports.tools import ToolOutcome
from internal.terminal_screen.screen import screen_text
from internal.tools.commands.configuration_files import configuration_metadata
from internal.tools.tool import OutputBuffer, ToolContext, tool

_MAX_WAIT_SECONDS = 60


@tool(risk="read", title={"en": "Read a command's output", "zh": "读取命令输出"}, sandboxed=True)
async def shell_output(
    context: ToolContext,
    id: Annotated[str, msgspec.Meta(max_length=40), "The id of a background command."],  # noqa: A002  # the name of the argument
    since: Annotated[int, msgspec.Meta(ge=0), "Return what was written after this offset."] = 0,
    wait_seconds: Annotated[
        int,
        msgspec.Meta(ge=0, le=_MAX_WAIT_SECONDS),
        "Wait so long for new output or the end of the command.",
    ] = 0,
) -> ToolOutcome:
    """Return the output of a background command, and whether it still runs."""
    try:
        output = await context.background.read(
            context.call.session_id, id, since, float(wait_seconds)
        )
    except NotFound as error:
        raise ToolError(str(error)) from error
    shown = OutputBuffer()
    shown.add(screen_text(output.text))
    parts = [
        f"[{output.missing:,} bytes before this are no longer kept]" if output.missing else "",
        shown.text().rstrip("\n"),
        output.end or f"[it runs; read on with since={output.next}]",
    ]
    return ToolOutcome(
        "\n".join(filter(None, parts)),
        metadata={
            "id": id,
            "running": not output.end,
            "next": output.next,
            **configuration_metadata(output.configuration),
        },
    )


@tool(risk="read", title={"en": "Stop a command", "zh": "停止命令"}, sandboxed=True)
async def shell_stop(
    context: ToolContext,
    id: Annotated[str, msgspec.Meta(max_length=40), "The id of a background command."],  # noqa: A002  # the name of the argument
) -> str:
    """Stop a background command and all that it started."""
    try:
        stopped = await context.background.stop(context.call.session_id, id)
    except NotFound as error:
        raise ToolError(str(error)) from error
    code = "" if stopped.exit_code is None else f", exit code {stopped.exit_code}"
    return f"[{id} has ended{code}]"

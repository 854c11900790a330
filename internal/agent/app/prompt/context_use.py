"""What fills the context window in a request, by part."""

from collections.abc import Iterable, Sequence

from internal.agent.app.prompt.instructions import PREAMBLE, InstructionBlock
from internal.agent.domain.messages import Message, ToolResult
from internal.agent.domain.react.context_window import (
    message_tokens,
    reserved_output,
    tools_tokens,
)
from internal.agent.domain.react.request_messages import RequestMessages
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.text import text_tokens
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import ContextPart, ContextUse
from internal.agent.ports.llm import ModelLimits
from internal.agent.ports.skills import SKILL_TOOLS


def fixed_parts(
    system: str,
    skills: str,
    blocks: Sequence[InstructionBlock],
    tools: Iterable[ToolSpec],
    *,
    servers: str = "",
) -> tuple[ContextPart, ...]:
    """Return the parts that are the same in all requests of a run.

    `skills` is the part of the system prompt that describes them, `servers` the part that lists the
    MCP servers whose tools are deferred.
    """
    described = text_tokens(skills) if skills else 0
    listed = text_tokens(servers) if servers else 0
    preamble = text_tokens(PREAMBLE) if blocks else 0
    parts = (
        ContextPart("rules", text_tokens(system) - described - listed + preamble),
        *(ContextPart(block.source, block.tokens, block.name) for block in blocks),
        ContextPart("skills", described),
        ContextPart("tools", tools_tokens(tools) + listed),
    )
    return tuple(part for part in parts if part.tokens)


def measure_context(
    config: RunConfig, messages: RequestMessages, limits: ModelLimits
) -> ContextUse:
    """Return what a request with these messages, instructions included, holds."""
    loaded = 0
    if any(tool.name in SKILL_TOOLS for tool in config.tools):
        loaded = _loaded_tokens(messages.exchanges())
    rest = messages.tokens - text_tokens(config.instructions) - loaded
    return ContextUse(
        window=limits.context_window,
        reserved=reserved_output(limits.context_window, limits.max_output_tokens),
        parts=(
            *config.context,
            *((ContextPart("loaded_skills", loaded),) if loaded else ()),
            ContextPart("conversation", max(rest, 0)),
        ),
    )


def _loaded_tokens(exchanges: Sequence[Message]) -> int:
    """Return the tokens of the results with skills."""
    loads = {call.call_id for each in exchanges for call in each.calls if call.name in SKILL_TOOLS}
    if not loads:
        return 0
    return sum(
        message_tokens(Message("user", (part,)))
        for message in exchanges
        for part in message.parts
        if isinstance(part, ToolResult) and part.call_id in loads and not part.failed
    )

"""The content of the context window in a request, by part."""

from collections.abc import Collection, Iterable, Sequence

from internal.agent.capabilities.run_draft import Opening, PromptSection
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


def fixed_parts(
    system: str,
    sections: Sequence[PromptSection],
    openings: Sequence[Opening],
    tools: Iterable[ToolSpec],
) -> tuple[ContextPart, ...]:
    """Return the parts that are the same in all requests of a run.

    The sections are parts of the system prompt, the openings follow it.
    """
    described = [ContextPart(each.kind, text_tokens(each.text)) for each in sections]
    counted = (
        ContextPart("rules", text_tokens(system) - sum(each.tokens for each in described)),
        *(part for opening in openings for part in opening.parts),
        *described,
        ContextPart("tools", tools_tokens(tools)),
    )
    parts: dict[tuple[str, str], ContextPart] = {}
    for part in counted:
        known = parts.get((part.kind, part.name))
        tokens = part.tokens + (known.tokens if known else 0)
        parts[part.kind, part.name] = ContextPart(part.kind, tokens, part.name)
    return tuple(part for part in parts.values() if part.tokens)


def measure_context(
    config: RunConfig, messages: RequestMessages, limits: ModelLimits
) -> ContextUse:
    """Return the content of a request with these messages, instructions included."""
    loaded = 0
    if retained := {tool.name for tool in config.tools if tool.retained}:
        loaded = _result_tokens(messages.exchanges(), retained)
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


def _result_tokens(exchanges: Sequence[Message], names: Collection[str]) -> int:
    """Return the tokens of the results of tools."""
    loads = {call.call_id for each in exchanges for call in each.calls if call.name in names}
    if not loads:
        return 0
    return sum(
        message_tokens(Message("user", (part,)))
        for message in exchanges
        for part in message.parts
        if isinstance(part, ToolResult) and part.call_id in loads and not part.failed
    )

"""Parts of the context window and their sizes."""

import msgspec

from internal.agent.app.prompt.context_use import fixed_parts, measure_context
from internal.agent.capabilities.instructions.capability import (
    PREAMBLE,
    instruction_blocks,
    instructions_text,
)
from internal.agent.capabilities.run_draft import Opening, PromptSection
from internal.agent.domain.messages import Message, ToolCall, ToolResult, user_message
from internal.agent.domain.react.context_window import (
    message_tokens,
    reserved_output,
    tools_tokens,
)
from internal.agent.domain.react.request_messages import RequestMessages
from internal.agent.domain.text import text_tokens
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import ContextPart
from internal.agent.ports.instructions import Instruction
from internal.agent.ports.llm import ModelLimits
from tests.support.turn_driver import TOOLS, run_config
from tests.support.weighed_messages import weighed

LIMITS = ModelLimits(200_000, 32_000)
SKILLS = "- bird-song: Writes down the songs of birds."
SYSTEM = f"Rules: be careful.\n\n{SKILLS}"
SECTIONS = (PromptSection("skills", "Skills:", SKILLS),)
BLOCKS = instruction_blocks(
    [
        Instruction("owner", "Be brief.", "AGENTS.md"),
        Instruction("chat", "In euros."),
        Instruction("folder", "Indent with tabs.", "a/AGENTS.md"),
    ]
)


OPENING = Opening(
    instructions_text(BLOCKS),
    (
        ContextPart("rules", text_tokens(PREAMBLE)),
        *(ContextPart(each.source, each.tokens, each.name) for each in BLOCKS),
    ),
)


def loads(call_id: str, *, failed: bool = False, name: str = "load_skill") -> list[Message]:
    return [
        Message("assistant", (ToolCall(call_id, name, {"name": "bird-song"}),)),
        Message("user", (ToolResult(call_id, "Listen first. " * 100, failed),)),
    ]


def test_each_instruction_text_is_a_part_and_the_parts_are_the_whole() -> None:
    parts = fixed_parts(SYSTEM, SECTIONS, [OPENING], TOOLS)
    assert [(part.kind, part.name) for part in parts] == [
        ("rules", ""),
        ("owner", "AGENTS.md"),
        ("chat", ""),
        ("folder", "a/AGENTS.md"),
        ("skills", ""),
        ("tools", ""),
    ]
    whole = text_tokens(SYSTEM) + text_tokens(instructions_text(BLOCKS)) + tools_tokens(TOOLS)
    assert abs(sum(part.tokens for part in parts) - whole) <= len(parts)


def test_the_list_of_servers_counts_as_tools() -> None:
    servers = "- birds (207 tools): ring, count"
    system = f"{SYSTEM}\n\n{servers}"
    listing = PromptSection("tools", "Servers:", servers)
    plain = {part.kind: part.tokens for part in fixed_parts(SYSTEM, SECTIONS, [], TOOLS)}
    parts = fixed_parts(system, [*SECTIONS, listing], [], TOOLS)
    listed = {part.kind: part.tokens for part in parts}
    assert listed["tools"] == plain["tools"] + text_tokens(servers)
    assert abs(listed["rules"] - plain["rules"]) <= 2


def test_a_part_that_is_empty_is_left_out() -> None:
    assert [part.kind for part in fixed_parts("Rules", [], [], [])] == ["rules"]


def test_what_loaded_skills_take_is_no_part_of_the_conversation() -> None:
    instructions = instructions_text(BLOCKS)
    fixed = (ContextPart("rules", 7),)
    load_skill = ToolSpec("load_skill", "Load a skill.", {"type": "object"}, "read", retained=True)
    tools = (*TOOLS, load_skill)
    config = msgspec.structs.replace(
        run_config(), instructions=instructions, context=fixed, tools=tools
    )
    beginning = user_message(instructions + "hello")
    other = loads("b", name="read_file")
    messages = [beginning, *loads("a"), *other, *loads("c", failed=True)]
    use = measure_context(config, RequestMessages(weighed(messages)), LIMITS)
    loaded = message_tokens(loads("a")[1])
    assert use.parts[:2] == (*fixed, ContextPart("loaded_skills", loaded))
    everything = sum(map(message_tokens, messages)) - text_tokens(instructions)
    assert use.parts[2:] == (ContextPart("conversation", everything - loaded),)
    assert use.window == LIMITS.context_window
    assert use.reserved == reserved_output(LIMITS.context_window, LIMITS.max_output_tokens)


def test_without_loaded_skills_there_is_no_such_part() -> None:
    use = measure_context(run_config(), RequestMessages(weighed([user_message("hello")])), LIMITS)
    assert [part.kind for part in use.parts] == ["conversation"]

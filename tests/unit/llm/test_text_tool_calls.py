"""Calls in words: found however the words are cut, never shown, and told back as words."""

import json
from collections.abc import AsyncGenerator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.messages import (
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    user_message,
)
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelRequest, ModelResponse, ModelStreamEvent, TextDelta
from internal.llm.text_tool_calls import TextToolCalls, ToolCallParser

LOOK = ToolSpec("look", "Look at a thing.", {"type": "object", "properties": {}}, "read")
CALL = '<tool_call>\n{"name": "look", "arguments": {"at": "x"}}\n</tool_call>'
FENCED = '```tool_call\n{"tool": "look", "parameters": {"at": "x"}}\n```'


class Parrot:
    """A model that says the pieces it was given, and keeps what it was asked."""

    provider = "parrot"

    def __init__(self, *pieces: str, thought: str = "") -> None:
        self._pieces, self._thought = pieces, thought
        self.asked: list[ModelRequest] = []
        self.closed = self.warmed = self.checked = False

    def check_key(self) -> None:
        self.checked = True

    def preload(self) -> None:
        self.warmed = True

    async def close(self) -> None:
        self.closed = True

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        self.asked.append(request)
        if self._thought:
            yield TextDelta(self._thought, reasoning=True)
        for piece in self._pieces:
            yield TextDelta(piece)
        thoughts: tuple[Part, ...] = (Thinking(self._thought),) if self._thought else ()
        said: tuple[Part, ...] = (Text("".join(self._pieces)),) if self._pieces else ()
        yield ModelResponse((*thoughts, *said), Usage(1, 1), "end", "parrot-1")


def asking(
    *messages: Message, choice: str = "auto", tools: Sequence[ToolSpec] = (LOOK,)
) -> ModelRequest:
    told = messages or (user_message("hi"),)
    final = choice == "none"
    return ModelRequest(
        "parrot-1", "be brief", told, tuple(tools), tool_choice="none" if final else "auto"
    )


async def heard(parrot: Parrot, request: ModelRequest | None = None) -> tuple[str, ModelResponse]:
    *words, reply = [piece async for piece in TextToolCalls(parrot).stream(request or asking())]
    assert isinstance(reply, ModelResponse)
    return "".join(w.text for w in words if isinstance(w, TextDelta) and not w.reasoning), reply


def calls_in(reply: ModelResponse) -> list[ToolCall]:
    return [part for part in reply.parts if isinstance(part, ToolCall)]


@pytest.mark.parametrize("block", [CALL, FENCED])
async def test_a_block_becomes_a_call_and_is_not_shown(block: str) -> None:
    said, reply = await heard(Parrot("Let me look.\n", block[:7], block[7:]))
    assert said == "Let me look.\n"
    assert reply.parts[0] == Text("Let me look.\n")
    (call,) = calls_in(reply)
    assert (call.name, call.arguments, call.malformed) == ("look", {"at": "x"}, None)
    assert reply.stop == "tools"


async def test_words_without_a_block_pass_as_they_come() -> None:
    words = ["if a <b then ", "<tool", "box> and `` or ```py", "\ncode\n```", " <tool_cal"]
    said, reply = await heard(Parrot(*words))
    assert said == "".join(words)
    assert (reply.parts, reply.stop) == ((Text("".join(words)),), "end")


async def test_thoughts_pass_untouched() -> None:
    parrot = Parrot("ok", thought=f"should I {CALL}?")
    pieces = [piece async for piece in TextToolCalls(parrot).stream(asking())]
    assert pieces[0] == TextDelta(f"should I {CALL}?", reasoning=True)
    reply = pieces[-1]
    assert isinstance(reply, ModelResponse)
    assert calls_in(reply) == []


async def test_several_blocks_and_a_list_in_one_are_several_calls_with_ids_of_their_own() -> None:
    many = '<tool_call>[{"name": "a"}, {"name": "b", "arguments": "{\\"n\\": 1}"}]</tool_call>'
    _, reply = await heard(Parrot(CALL, many))
    made = calls_in(reply)
    assert [(call.name, call.arguments) for call in made] == [
        ("look", {"at": "x"}),
        ("a", {}),
        ("b", {"n": 1}),
    ]
    assert len({call.call_id for call in made}) == 3
    _, again = await heard(Parrot(CALL, many))
    assert calls_in(again) == made  # the same for the same request
    _, other = await heard(Parrot(CALL, many), asking(user_message("another")))
    assert not {call.call_id for call in calls_in(other)} & {call.call_id for call in made}


TRAPS = [
    "</tool_call>",
    "```",
    'a "quoted" </tool_call> and \\ a backslash \\" too',
    "<tool_call>{}</tool_call>",
    "\n```tool_call\n{}\n```\n",
    "",
]


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize(
    ("opening", "closing"), [("<tool_call>", "</tool_call>"), ("```tool_call", "```")]
)
async def test_a_mark_inside_of_a_text_is_no_end(trap: str, opening: str, closing: str) -> None:
    block = json.dumps({"name": "write", "arguments": {"text": trap}})
    said, reply = await heard(Parrot(*f"so {opening}\n{block}\n{closing} done"))
    (call,) = calls_in(reply)
    assert (call.arguments, call.malformed) == ({"text": trap}, None)
    assert said == "so  done"


async def test_raw_line_breaks_in_a_text_are_forgiven() -> None:
    _, reply = await heard(
        Parrot('<tool_call>{"name": "w", "arguments": {"t": "a\nb"}}</tool_call>')
    )
    assert calls_in(reply)[0].arguments == {"t": "a\nb"}


@pytest.mark.parametrize(
    ("block", "name"),
    [
        ('{"name": "look", "arguments": {"at":', "look"),
        ('{"tool": "look" nonsense}', "look"),
        ("look(at=x)", "tool_call"),
        ("", "tool_call"),
        ("[]", "tool_call"),
        ("7", "tool_call"),
        ('{"name": ""}', "tool_call"),
        ('{"name": "look", "arguments": 7}', "look"),
        ('{"name": "look", "arguments": "no json"}', "look"),
        ('{"name": "look", "arguments": {"a": "un" balanced"}}', "look"),
    ],
)
async def test_what_is_no_call_comes_back_malformed(block: str, name: str) -> None:
    said, reply = await heard(Parrot(f"Hm. <tool_call>{block}</tool_call>"))
    (call,) = calls_in(reply)
    assert (call.name, call.arguments, call.malformed) == (name, {}, block)
    assert (said, reply.stop) == ("Hm. ", "tools")


async def test_a_broken_block_does_not_swallow_the_next() -> None:
    broken = '<tool_call>{"name": "a", "arguments": {"t": "odd}}</tool_call>'
    said, reply = await heard(Parrot(*f"{broken} and {CALL} end"))
    first, second = calls_in(reply)
    assert (first.malformed is None, second.arguments) == (False, {"at": "x"})
    assert said == " and  end"


async def test_a_block_without_end_counts_when_it_is_whole() -> None:
    _, reply = await heard(Parrot(CALL.removesuffix("</tool_call>")))
    assert calls_in(reply)[0].arguments == {"at": "x"}


async def test_where_no_call_may_be_made_none_is() -> None:
    said, reply = await heard(Parrot("Well. ", CALL), asking(choice="none"))
    assert (said, reply.parts, reply.stop) == ("Well. ", (Text("Well. "),), "end")


@given(
    st.lists(
        st.sampled_from(["so ", "<", "`", CALL, FENCED, "<tool_", "```", '"', "\\", "é"]),
        max_size=12,
    ),
    st.lists(st.integers(1, 9), min_size=1, max_size=9),
)
def test_where_words_are_cut_makes_no_difference(parts: list[str], sizes: list[int]) -> None:
    text = "".join(parts)
    whole = ToolCallParser()
    shown = whole.feed(text) + whole.end()
    found, pieces, start, n = ToolCallParser(), [], 0, 0
    while start < len(text):
        pieces.append(found.feed(text[start : start + sizes[n % len(sizes)]]))
        assert "<tool_call>" not in pieces[-1]
        start, n = start + sizes[n % len(sizes)], n + 1
    assert "".join(pieces) + found.end() == shown
    assert found.blocks == whole.blocks


async def test_tools_calls_and_results_are_told_in_words() -> None:
    parrot = Parrot("done")
    call = ToolCall("c1", "look", {"at": "你好"})
    bad = ToolCall("c2", "look", {}, "{half")
    results = (
        ToolResult("c1", "seen </tool_result> <tool_result>"),
        ToolResult("c2", "no", failed=True),
        ToolResult("c9", "whose?"),
    )
    told = (
        user_message("hi"),
        Message("assistant", (Thinking("hm"), Text("Looking."), call, bad)),
        Message("user", results),
    )
    await heard(parrot, asking(*told))
    (asked,) = parrot.asked
    assert (asked.tools, asked.tool_choice) == ((), "auto")
    assert asked.system.startswith("be brief\n\n")
    assert '{"name":"look","description":"Look at a thing."' in asked.system
    assert asked.messages[1].parts[0] == Thinking("hm")
    assert asked.messages[1].calls == ()
    assert '<tool_call>\n{"name":"look","arguments":{"at":"你好"}}' in asked.messages[1].text
    assert "<tool_call>\n{half\n</tool_call>" in asked.messages[1].text
    said = asked.messages[2].text
    assert '<tool_result name="look" failed="true">\nno\n</tool_result>' in said
    assert '<tool_result name="tool">' in said
    assert said.count("</tool_result>") == 3


async def test_without_tools_nothing_is_added() -> None:
    parrot = Parrot("done")
    await heard(parrot, asking(tools=()))
    assert parrot.asked[0].system == "be brief"


async def test_the_rest_of_the_port_is_passed_on() -> None:
    parrot = Parrot()
    model = TextToolCalls(parrot)
    model.check_key()
    model.preload()
    await model.close()
    assert (model.provider, parrot.checked, parrot.warmed, parrot.closed) == (
        *("parrot", True, True),
        True,
    )

"""Tool calls written as text: parsed from any chunks, removed from the text, sent back as text."""

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
from internal.llm.text_tool_calls import TextToolCalls
from internal.llm.written_calls import WrittenCalls

LOOK = ToolSpec("look", "Look at a thing.", {"type": "object", "properties": {}}, "read")
CALL = '<tool_call>\n{"name": "look", "arguments": {"at": "x"}}\n</tool_call>'
FENCED = '```tool_call\n{"tool": "look", "parameters": {"at": "x"}}\n```'


class PieceModel:
    """A model that streams fixed pieces and keeps its requests."""

    provider = "pieces"

    def __init__(self, *pieces: str, thought: str = "") -> None:
        self._pieces, self._thought = pieces, thought
        self.requests: list[ModelRequest] = []
        self.closed = self.preloaded = self.checked = False

    def check_key(self) -> None:
        self.checked = True

    def preload(self) -> None:
        self.preloaded = True

    async def close(self) -> None:
        self.closed = True

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        self.requests.append(request)
        if self._thought:
            yield TextDelta(self._thought, reasoning=True)
        for piece in self._pieces:
            yield TextDelta(piece)
        thoughts: tuple[Part, ...] = (Thinking(self._thought),) if self._thought else ()
        texts: tuple[Part, ...] = (Text("".join(self._pieces)),) if self._pieces else ()
        yield ModelResponse((*thoughts, *texts), Usage(1, 1), "end", "pieces-1")


def make_request(
    *messages: Message, choice: str = "auto", tools: Sequence[ToolSpec] = (LOOK,)
) -> ModelRequest:
    history = messages or (user_message("hi"),)
    final = choice == "none"
    return ModelRequest(
        "pieces-1", "be brief", history, tuple(tools), tool_choice="none" if final else "auto"
    )


async def collect(
    client: PieceModel, request: ModelRequest | None = None
) -> tuple[str, ModelResponse]:
    *deltas, reply = [
        piece async for piece in TextToolCalls(client).stream(request or make_request())
    ]
    assert isinstance(reply, ModelResponse)
    return "".join(w.text for w in deltas if isinstance(w, TextDelta) and not w.reasoning), reply


def calls_in(reply: ModelResponse) -> list[ToolCall]:
    return [part for part in reply.parts if isinstance(part, ToolCall)]


@pytest.mark.parametrize("block", [CALL, FENCED])
async def test_a_call_block_becomes_a_call_and_is_not_part_of_the_text(block: str) -> None:
    text, reply = await collect(PieceModel("Let me look.\n", block[:7], block[7:]))
    assert text == "Let me look.\n"
    assert reply.parts[0] == Text("Let me look.\n")
    (call,) = calls_in(reply)
    assert (call.name, call.arguments, call.malformed) == ("look", {"at": "x"}, None)
    assert reply.stop == "tools"


async def test_text_without_a_block_is_unchanged() -> None:
    words = ["if a <b then ", "<tool", "box> and `` or ```py", "\ncode\n```", " <tool_cal"]
    text, reply = await collect(PieceModel(*words))
    assert text == "".join(words)
    assert (reply.parts, reply.stop) == ((Text("".join(words)),), "end")


async def test_reasoning_is_not_searched_for_calls() -> None:
    client = PieceModel("ok", thought=f"should I {CALL}?")
    pieces = [piece async for piece in TextToolCalls(client).stream(make_request())]
    assert pieces[0] == TextDelta(f"should I {CALL}?", reasoning=True)
    reply = pieces[-1]
    assert isinstance(reply, ModelResponse)
    assert calls_in(reply) == []


async def test_several_blocks_and_lists_become_calls_with_distinct_ids() -> None:
    many = '<tool_call>[{"name": "a"}, {"name": "b", "arguments": "{\\"n\\": 1}"}]</tool_call>'
    _, reply = await collect(PieceModel(CALL, many))
    made = calls_in(reply)
    assert [(call.name, call.arguments) for call in made] == [
        ("look", {"at": "x"}),
        ("a", {}),
        ("b", {"n": 1}),
    ]
    assert len({call.call_id for call in made}) == 3
    _, again = await collect(PieceModel(CALL, many))
    assert calls_in(again) == made  # the same for the same request
    _, other = await collect(PieceModel(CALL, many), make_request(user_message("another")))
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
async def test_a_closing_mark_inside_a_string_does_not_end_the_block(
    trap: str, opening: str, closing: str
) -> None:
    block = json.dumps({"name": "write", "arguments": {"text": trap}})
    text, reply = await collect(PieceModel(*f"so {opening}\n{block}\n{closing} done"))
    (call,) = calls_in(reply)
    assert (call.arguments, call.malformed) == ({"text": trap}, None)
    assert text == "so  done"


async def test_raw_line_breaks_in_a_string_are_accepted() -> None:
    _, reply = await collect(
        PieceModel('<tool_call>{"name": "w", "arguments": {"t": "a\nb"}}</tool_call>')
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
async def test_an_invalid_block_becomes_a_malformed_call(block: str, name: str) -> None:
    text, reply = await collect(PieceModel(f"Hm. <tool_call>{block}</tool_call>"))
    (call,) = calls_in(reply)
    assert (call.name, call.arguments, call.malformed) == (name, {}, block)
    assert (text, reply.stop) == ("Hm. ", "tools")


async def test_a_broken_block_does_not_swallow_the_next() -> None:
    broken = '<tool_call>{"name": "a", "arguments": {"t": "odd}}</tool_call>'
    text, reply = await collect(PieceModel(*f"{broken} and {CALL} end"))
    first, second = calls_in(reply)
    assert (first.malformed is None, second.arguments) == (False, {"at": "x"})
    assert text == " and  end"


async def test_an_unclosed_block_with_complete_json_is_a_call() -> None:
    _, reply = await collect(PieceModel(CALL.removesuffix("</tool_call>")))
    assert calls_in(reply)[0].arguments == {"at": "x"}


async def test_no_call_is_returned_when_calls_are_not_allowed() -> None:
    text, reply = await collect(PieceModel("Well. ", CALL), make_request(choice="none"))
    assert (text, reply.parts, reply.stop) == ("Well. ", (Text("Well. "),), "end")


@given(
    st.lists(
        st.sampled_from(["so ", "<", "`", CALL, FENCED, "<tool_", "```", '"', "\\", "é"]),
        max_size=12,
    ),
    st.lists(st.integers(1, 9), min_size=1, max_size=9),
)
def test_parsing_does_not_depend_on_chunk_boundaries(parts: list[str], sizes: list[int]) -> None:
    text = "".join(parts)
    whole = WrittenCalls([LOOK], lenient=True)
    shown = whole.feed(text) + whole.end()
    found, pieces, start, n = WrittenCalls([LOOK], lenient=True), [], 0, 0
    while start < len(text):
        pieces.append(found.feed(text[start : start + sizes[n % len(sizes)]]))
        assert "<tool_call>" not in pieces[-1]
        start, n = start + sizes[n % len(sizes)], n + 1
    assert "".join(pieces) + found.end() == shown
    assert found.calls == whole.calls


async def test_tools_calls_and_results_are_written_as_text() -> None:
    client = PieceModel("done")
    call = ToolCall("c1", "look", {"at": "你好"})
    bad = ToolCall("c2", "look", {}, "{half")
    results = (
        ToolResult("c1", "seen </tool_result> <tool_result>"),
        ToolResult("c2", "no", failed=True),
        ToolResult("c9", "whose?"),
    )
    history = (
        user_message("hi"),
        Message("assistant", (Thinking("hm"), Text("Looking."), call, bad)),
        Message("user", results),
    )
    await collect(client, make_request(*history))
    (request,) = client.requests
    assert (request.tools, request.tool_choice) == ((), "auto")
    assert request.system.startswith("be brief\n\n")
    assert '{"name":"look","description":"Look at a thing."' in request.system
    assert request.messages[1].parts[0] == Thinking("hm")
    assert request.messages[1].calls == ()
    assert '<tool_call>\n{"name":"look","arguments":{"at":"你好"}}' in request.messages[1].text
    assert "<tool_call>\n{half\n</tool_call>" in request.messages[1].text
    text = request.messages[2].text
    assert '<tool_result name="look" failed="true">\nno\n</tool_result>' in text
    assert '<tool_result name="tool">' in text
    assert text.count("</tool_result>") == 3


async def test_without_tools_nothing_is_added() -> None:
    client = PieceModel("done")
    await collect(client, make_request(tools=()))
    assert client.requests[0].system == "be brief"


async def test_other_methods_are_delegated() -> None:
    client = PieceModel()
    model = TextToolCalls(client)
    model.check_key()
    model.preload()
    await model.close()
    assert (model.provider, client.checked, client.preloaded, client.closed) == (
        *("pieces", True, True),
        True,
    )

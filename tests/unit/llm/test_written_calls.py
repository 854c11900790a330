"""Calls written into the text, in every published form and cut at every place."""
# ruff: noqa: RUF001 - DeepSeek's marks have full-width bars

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.agent.domain.messages import ToolCall
from internal.agent.domain.tools import ToolSpec
from internal.llm.written_calls import WrittenCalls

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = (
    ToolSpec("read_file", "", PATH, "read"),
    ToolSpec("write_file", "", {"type": "object", "properties": {}}, "write"),
)
READ = ToolCall("", "read_file", {"path": "a.txt"})
OBJECT = '{"path": "a.txt"}'
JSON = '{"name": "read_file", "arguments": {"path": "a.txt"}}'
LLAMA = '{"name": "read_file", "parameters": {"path": "a.txt"}}'
TAGS = "<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n</function>"
INVOKE = '<invoke name="read_file">\n<parameter name="path">a.txt</parameter>\n</invoke>'


def dsml(bars: str, name: str) -> str:
    mark = f"{bars}DSML{bars}"
    return (
        f'<{mark}{name}>\n<{mark}invoke name="read_file">\n'
        f'<{mark}parameter name="path" string="true">a.txt</{mark}parameter>\n'
        f"</{mark}invoke>\n</{mark}{name}>"
    )


KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0"
    f"<|tool_call_argument_begin|>{OBJECT}<|tool_call_end|><|tool_calls_section_end|>"
)
V3 = (
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n"
    f"```json\n{OBJECT}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
)
V31 = (
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>"
    f"{OBJECT}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
)
FORMS = {
    "hermes": f"<tool_call>\n{JSON}\n</tool_call>",
    "hermes without its end": f"<tool_call>\n{JSON}\n",
    "hermes with tags": f"<tool_call>\n{TAGS}\n</tool_call>",
    "glm": "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.txt</arg_value>\n"
    "</tool_call>",
    "minimax": f"<minimax:tool_call>\n{INVOKE}\n</minimax:tool_call>",
    "seed": f"<seed:tool_call>{TAGS}</seed:tool_call>",
    "qwen coder": TAGS,
    "llama tags": f"<function=read_file>{OBJECT}</function>",
    "claude": f"<function_calls>\n{INVOKE}\n</function_calls>",
    "invoke": INVOKE,
    "dsml 3.2": dsml("｜", "function_calls"),
    "dsml 4": dsml("｜｜", "tool_calls"),
    "kimi": KIMI,
    "kimi without its end": KIMI.removesuffix("<|tool_calls_section_end|>"),
    "deepseek 3": V3,
    "deepseek 3.1": V31,
    "mistral list": f"[TOOL_CALLS] [{JSON}]",
    "mistral name": f"[TOOL_CALLS]read_file{OBJECT}",
    "mistral arguments": f"[TOOL_CALLS]read_file[CALL_ID]Ab1[ARGS]{OBJECT}",
    "react": f"Action: read_file\nAction Input: {OBJECT}",
    "react with a made-up result": f"Action: read_file\nAction Input: {OBJECT}\nObservation: no\n",
    "react with one input": "Action: read_file\nAction Input: a.txt",
    "bare json": LLAMA,
    "bare json list": f"[{JSON}]",
    "bare json with its mark": f"<|python_tag|>{LLAMA}",
    "openai's own": '{"type": "function", "function": ' + LLAMA + "}",
    "fence": f"```tool_call\n{JSON}\n```",
    "spelling": f"<tool_call>{JSON.replace('read_file', 'functions.Read-File')}</tool_call>",
    "encoded twice": "<tool_call>"
    + json.dumps({"name": "read_file", "arguments": OBJECT})
    + "</tool_call>",
}


def parse(pieces: list[str], *, is_cut: bool = False) -> tuple[str, list[ToolCall]]:
    found = WrittenCalls(TOOLS)
    shown = [found.feed(piece) for piece in pieces]
    return "".join((*shown, found.end(is_cut=is_cut))), found.calls


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("before", ["", "Let me look.\n"])
def test_a_complete_form_is_a_call_and_never_shown(form: str, before: str) -> None:
    text = before + FORMS[form]
    for cut in range(len(text) + 1):
        found = WrittenCalls(TOOLS)
        first = found.feed(text[:cut])
        assert before.startswith(first), cut
        shown = first + found.feed(text[cut:]) + found.end()
        assert (shown.strip(), found.calls) == (before.strip(), [READ]), cut
    shown, calls = parse(list(text))
    assert (shown.strip(), calls) == (before.strip(), [READ])


@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_an_unknown_tool_is_text(form: str) -> None:
    text = FORMS[form].replace("read_file", "look_up").replace("Read-File", "look_up")
    assert parse([text]) == (text, [])
    assert parse(list(text)) == (text, [])


LINES = {form: text.replace("\n", " ") for form, text in FORMS.items() if "\n" not in text}
QUOTED = [
    *(f"```\n{text}\n```\n" for form, text in FORMS.items() if form not in {"fence", "deepseek 3"}),
    *(template.replace("{}", text) for template in ("> {}\n", "    {}") for text in LINES.values()),
    *(f"Write `{text}` to read." for text in LINES.values()),
    *(f"Write “{text}” to read." for text in LINES.values()),
]


@pytest.mark.parametrize("text", QUOTED)
def test_a_quoted_form_is_text(text: str) -> None:
    assert parse([text]) == (text, [])
    assert parse(list(text)) == (text, [])


@pytest.mark.parametrize(
    "form", ["hermes", "qwen coder", "dsml 3.2", "kimi", "mistral list", "react"]
)
def test_a_form_that_is_cut_is_text(form: str) -> None:
    text = FORMS[form]
    for length in range(1, len(text) - len("</tool_call>") - 40):
        assert parse([text[:length]], is_cut=True) == (text[:length], [])


def test_text_behind_a_block_is_shown_and_further_calls_are_read() -> None:
    text = f"One {FORMS['hermes']} two {FORMS['qwen coder']} three"
    shown, calls = parse(list(text))
    assert (shown.split(), calls) == (["One", "two", "three"], [READ, READ])


def test_a_mark_inside_of_an_argument_is_part_of_it() -> None:
    inner = f"{FORMS['hermes']} </function> </parameter> ``` end"
    as_json = json.dumps({"name": "write_file", "arguments": {"content": inner}})
    as_tags = f"<function=write_file><parameter=content>\n{inner}\n</parameter></function>"
    for text in (f"<tool_call>{as_json}</tool_call>", f"```tool_call\n{as_json}\n```", as_tags):
        assert parse(list(text)) == ("", [ToolCall("", "write_file", {"content": inner})])


@pytest.mark.parametrize(
    "text",
    [
        'The result is\n{"name": "read_file", "arguments": {"path": "a"}}\nas asked.',
        '{"path": "a.txt"}',
        '[{"a": 1}]',
        "[a link](https://example.com) and [TOOL",
        "[x] done\n[ ] open\n{not json}\n",
        "Action: we should read the file.\nAction Input: none",
        "Action",
        "In actions: Action: read_file",
        "if a <b and <function> then <tool_call",
        "<tool_call> is how models call tools.",
        "<tool_call>read_file</tool_call>",
        '<tool_call>{"name": "read_file"</tool_call> so',
        "[TOOL_CALLS] is a mark of Mistral.",
        "<function=read_file>\n<parameter=path>\na.txt\n</function>",
        "A",
        "",
    ],
)
def test_other_text_is_shown_as_it_is(text: str) -> None:
    assert parse([text]) == (text, [])
    assert parse(list(text)) == (text, [])


def test_text_is_not_held_longer_than_it_may_be_a_call() -> None:
    for text in ("a < b", "[a] b", "{ok}", "Act now", "<tool_call> is", "Action: go on\n"):
        found = WrittenCalls(TOOLS)
        assert found.feed(text + " and so on") == text + " and so on"


def test_long_arguments_are_read_in_linear_time() -> None:
    content = "</function> {} [] ``` <tool_call>\n" * 4000
    raw = json.dumps({"name": "write_file", "arguments": {"content": content}})
    text = f"[TOOL_CALLS][{raw}]"
    pieces = [text[n : n + 40] for n in range(0, len(text), 40)]
    assert parse(pieces) == ("", [ToolCall("", "write_file", {"content": content})])


@given(
    st.lists(
        st.sampled_from(["so ", "\n", "<", "[", "{", "`", '"', "```\n", "> ", *FORMS.values()]),
        max_size=8,
    ),
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
)
@settings(max_examples=60)
def test_reading_does_not_depend_on_chunk_boundaries(parts: list[str], sizes: list[int]) -> None:
    text, pieces = "".join(parts), list[str]()
    start = 0
    while start < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[start : start + size])
        start += size
    assert parse(pieces) == parse([text])

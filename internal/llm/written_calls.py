"""Tool calls that a model writes into its text, in the forms that are published for models.

A server that does not know the form of its model returns the call as text. Read are: `<tool_call>`
blocks with JSON (Hermes, Qwen), with pairs (GLM) or with function tags; function tags (Qwen Coder,
Seed, Llama); `[TOOL_CALLS]` (Mistral); invoke tags (MiniMax, DeepSeek's DSML); section marks (Kimi,
DeepSeek); `Action:` with `Action Input:` (ReAct); bare JSON at the end (Llama); and a code fence
`tool_call`. A form that is not complete, names no tool or is quoted is text.
"""
# ruff: noqa: RUF001 - DeepSeek's marks have full-width bars

import re
from collections.abc import Callable, Mapping, Sequence
from json import JSONDecoder
from typing import Any, Literal, NamedTuple

from internal.agent.domain.messages import ToolCall
from internal.agent.domain.react.call_repair import resolve_tool_name
from internal.agent.domain.tools import ToolSpec
from internal.llm.code_context import CodeContext

WRITTEN_CALL = "written_call"
"""The kind of repair that a call read from the text of a reply is counted as."""
MAX_ATTEMPTS = 64
"""Closing marks of one block at which its content is read."""

_Form = Literal[
    "block",
    "fence",
    "function",
    "invokes",
    "invoke",
    "mistral",
    "kimi",
    "deepseek",
    "json",
    "react",
]
_OPENINGS: dict[str, _Form] = {
    "<tool_call>": "block",
    "<seed:tool_call>": "block",
    "<minimax:tool_call>": "block",
    "```tool_call": "fence",
    "<function=": "function",
    "<function name=": "function",
    "<function_calls>": "invokes",
    "<tool_calls>": "invokes",
    "<｜DSML｜function_calls>": "invokes",
    "<｜DSML｜tool_calls>": "invokes",
    "<｜｜DSML｜｜function_calls>": "invokes",
    "<｜｜DSML｜｜tool_calls>": "invokes",
    "<invoke name=": "invoke",
    "[TOOL_CALLS]": "mistral",
    "<|tool_calls_section_begin|>": "kimi",
    "<|tool_call_section_begin|>": "kimi",
    "<|tool_call_begin|>": "kimi",
    "<｜tool▁calls▁begin｜>": "deepseek",
    "<｜tool▁call▁begin｜>": "deepseek",
    "Action:": "react",
    "<|python_tag|>": "json",
    "{": "json",
    "[": "json",
}
_OPENING = re.compile("|".join(map(re.escape, sorted(_OPENINGS, key=len, reverse=True))))
# what an opening begins with, or its start at the end of the text
_INTERESTING = re.compile(
    r"<(?:[fimst|｜]|\Z)|\[(?:T|\s*(?:\{|\Z))|\{|`(?:\Z|`(?:\Z|`(?:\Z|t)))|A(?:c|\Z)"
)
_BY_START = {start: tuple(each for each in _OPENINGS if each[0] == start) for start in "<[{`A"}
_MAX_OPENING_LENGTH = max(map(len, _OPENINGS))
_AT_LINE_START = {"json", "react", "fence"}
_CLOSINGS: dict[_Form, re.Pattern[str]] = {
    "block": re.compile(r"</(?:seed:|minimax:)?tool_call>"),
    "fence": re.compile(r"```"),
    "function": re.compile(r"</function>"),
    "invokes": re.compile(r"</[^<>\n]{0,12}(?:function|tool)_calls>"),
    "invoke": re.compile(r"</invoke>"),
    "kimi": re.compile(r"<\|tool_calls?_section_end\|>"),
    "deepseek": re.compile(r"<｜tool▁calls▁end｜>"),
}
_JUDGED_LENGTH = 2_000
"""Characters within which a text shows that it is no call after all."""
_MARGIN = 64
"""More than the length of any closing mark."""

_NAME = r"[\w.:-]{1,128}"
_PARAMETER_END = re.compile(r"</(?P<bars>｜*(?:DSML)?｜*)parameter>(?=\s*(?:<|\Z))")
_FUNCTION = re.compile(rf'\s*<function(?:=|\s+name=)"?(?P<name>{_NAME})"?\s*>')
_INVOKE = re.compile(rf'\s*<(?P<bars>(?:｜+DSML｜+)?)\s?invoke\s+name="(?P<name>{_NAME})"\s*>')
_PARAMETER = re.compile(
    r'\s*<(?:｜+DSML｜+)?\s?parameter(?:=|\s+name=)"?(?P<name>[\w.:-]{1,128})"?'
    r'(?P<given>\s+string="(?:true|false)")?\s*>'
)
_BODY_END = re.compile(r"\s*</(?:｜+DSML｜+)?\s?(?:function|invoke)>")
_PAIR = re.compile(
    r"\s*<arg_key>(?P<key>[^<>]{1,128})</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>"
    r"(?=\s*(?:<arg_key>|\Z))",
    re.DOTALL,
)
_MISTRAL = re.compile(rf"(?P<name>{_NAME})(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(?=\{{)")
_KIMI = re.compile(
    rf"\s*<\|tool_call_begin\|>\s*(?P<name>{_NAME})\s*<\|tool_call_argument_begin\|>\s*"
)
_KIMI_END = re.compile(r"\s*(?:<\|tool_call_end\|>)?\s*")
_DEEPSEEK = re.compile(
    rf"\s*<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?(?P<name>{_NAME})"
    r"\s*(?:<｜tool▁sep｜>|```json)?\s*"
)
_DEEPSEEK_END = re.compile(r"\s*(?:```)?\s*(?:<｜tool▁call▁end｜>)?\s*")
_REACT = re.compile(
    rf"Action:[ \t]*`?(?P<name>{_NAME})`?[ \t]*\n[ \t]*Action Input:[ \t]*(?P<input>.*?)\s*"
    r"(?:^[ \t]*Observation:.*)?\Z",
    re.DOTALL | re.MULTILINE,
)
_REACT_START = re.compile(rf"Action:[ \t]*(?:`?(?P<name>{_NAME})?`?[ \t]*(?P<end>\n\s*)?)")
_JSON_KEYS = ("name", "tool", "function", "type", "id", "arguments", "parameters")
_JSON_START = re.compile(r"(?:<\|python_tag\|>)?\s*(?:\[\s*)?(?:\{\s*(?P<rest>.*))?", re.DOTALL)
_JSON_NAME = re.compile(r'"(?:name|tool)"\s*:\s*"([^"\\]{1,128})"')
_END_MARKS = re.compile(r"(?:\s|;|<\|(?:eom_id|eot_id|im_end)\|>)*")
_decoder = JSONDecoder(strict=False)


class _Read(NamedTuple):
    """A call as it is written."""

    name: str
    arguments: dict[str, Any]


class WrittenCalls:
    """Splits streamed text into visible text and calls, however it is cut.

    Text that may be the start of a call is held back until that is decided.

    Args:
        tools: are offered to the model; only their calls are read.
        lenient: the model was told to write blocks: a block that cannot be read becomes a
            malformed call, of any name and also in code, and the model is told what is wrong.
    """

    def __init__(self, tools: Sequence[ToolSpec], *, lenient: bool = False) -> None:
        self.calls: list[ToolCall] = []
        self._specs = {tool.name: tool for tool in tools}
        self._lenient = lenient
        self._context = CodeContext()
        self._held = ""
        self._form: _Form | None = None
        self._opening = ""
        self._pieces: list[str] = []
        self._length = 0
        self._tail = ""
        self._checked = self._attempts = 0

    def feed(self, text: str) -> str:
        """Take more text and return the part to show, which contains no part of a call."""
        if self._form is None:
            if not self._held and not _INTERESTING.search(text):  # almost always
                self._context.feed(text)
                return text
            self._held += text
            return self._scan()
        self._pieces.append(text)
        self._length += len(text)
        closing, seen = _CLOSINGS.get(self._form), self._tail + text
        self._tail = seen[-_MARGIN:]
        if self._length > _JUDGED_LENGTH and (closing is None or not closing.search(seen)):
            return ""
        self._join()
        return self._scan()

    def end(self, *, is_cut: bool = False) -> str:
        """Take the end of the text and return held text that belongs to no call.

        A block without its closing mark is a call if it is whole otherwise, unless the reply
        `is_cut` at its limit.
        """
        self._join()
        shown = [self._scan()]
        while self._form is not None:
            shown.append(self._settle(self._judge_end(is_cut=is_cut)))
            shown.append(self._scan())
        rest, self._held = self._held, ""
        self._context.feed(rest)
        return "".join((*shown, rest))

    def abandon(self) -> str:
        """Return the held text: it holds no call after all."""
        self._join()
        held, self._held, self._form = self._held, "", None
        return held

    def _join(self) -> None:
        self._held = "".join((self._held, *self._pieces))
        self._pieces.clear()
        self._length = len(self._held)

    def _scan(self) -> str:
        """Return the text before the next undecided call, and read the calls before it."""
        shown: list[str] = []
        while self._form is not None or self._find(shown):
            decided = self._judge()
            if decided is None:
                break
            shown.append(self._settle(decided))
        return "".join(shown)

    def _find(self, shown: list[str]) -> bool:
        """Find the next possible start of a call; the text before it is visible."""
        while opening := _OPENING.search(self._held):
            self._show(opening.start(), shown)
            form = _OPENINGS[opening[0]]
            if len(self._held) < _MAX_OPENING_LENGTH and any(
                each != opening[0] and each.startswith(self._held)
                for each in _BY_START[self._held[0]]
            ):
                return False  # the start of a longer one
            if self._may_open(form):
                self._form, self._opening = form, opening[0]
                self._checked, self._attempts = len(opening[0]), 0
                self._length, self._tail = len(self._held), ""
                return True
            self._show(len(opening[0]), shown)
        self._show(len(self._held) - _begun(self._held), shown)
        return False

    def _show(self, length: int, shown: list[str]) -> None:
        text, self._held = self._held[:length], self._held[length:]
        self._context.feed(text)
        shown.append(text)

    def _may_open(self, form: _Form) -> bool:
        if self._lenient and form in {"block", "fence"}:
            return True
        context = self._context
        if form in _AT_LINE_START and not context.is_line_start:
            return False
        if form == "fence":  # its own ticks make it no code
            return not (context.is_in_fence or context.is_quoted_line)
        return not context.is_literal

    def _settle(self, decided: "tuple[list[ToolCall], int]") -> str:
        """Take the calls of a decided text; return the text itself if it holds none."""
        calls, length = decided
        self._form, self._pieces, self._tail = None, [], ""
        self.calls += calls
        text, self._held = self._held[:length], self._held[length:]
        if calls:
            return ""
        self._context.feed(text)
        return text

    def _judge(self) -> "tuple[list[ToolCall], int] | None":
        """Return the calls that the held text starts with and its length, None if it is open."""
        text, form, opening = self._held, self._form, len(self._opening)
        if form is None or not self._is_possible(form, text):
            return [], opening
        closing = _CLOSINGS.get(form)
        if closing is None:
            return None
        for mark in closing.finditer(text, self._checked):
            self._attempts += 1
            self._checked = mark.end()
            if calls := self._read(form, text, mark.start(), mark.end()):
                return calls, mark.end()
            is_json = form in {"block", "fence"} and text[opening : mark.start()].lstrip()[:1] in {
                "{",
                "[",
            }
            if self._attempts >= MAX_ATTEMPTS:
                return [], opening
            if (is_json or self._lenient) and _is_balanced(text[opening : mark.start()]):
                return self._unreadable(text[opening : mark.start()], mark.end())
        self._checked = max(self._checked, len(text) - _MARGIN)
        return None

    def _judge_end(self, *, is_cut: bool) -> "tuple[list[ToolCall], int]":
        """Return the calls of a text that nothing follows."""
        form, text, opening = self._form or "json", self._held, len(self._opening)
        if form in {"block", "fence"}:
            if self._lenient and (mark := _CLOSINGS[form].search(text, opening)):
                return self._unreadable(text[opening : mark.start()], mark.end())
            if is_cut and not self._lenient:
                return [], opening
        if calls := self._read(form, text, len(text), len(text)):
            return calls, len(text)
        if self._lenient and form in {"block", "fence"}:
            return self._unreadable(text[opening:], len(text))
        return [], opening

    def _unreadable(self, body: str, length: int) -> "tuple[list[ToolCall], int]":
        if not self._lenient:
            return [], len(self._opening)
        raw = body.strip()
        found = _JSON_NAME.search(raw)
        return [ToolCall("", found[1] if found else "tool_call", {}, raw)], length

    def _read(self, form: _Form, text: str, end: int, after: int) -> list[ToolCall]:
        """Return the calls of a form, none if it is not complete or names no tool."""
        whole = form in {"function", "invoke", "react", "json"}
        body = text[:after] if whole else text[len(self._opening) : end]
        if form in {"kimi", "deepseek"} and self._opening.endswith(
            ("call_begin|>", "call▁begin｜>")
        ):
            body = text[:end]
        found = _READERS[form](body, self._specs)
        calls: list[ToolCall] = []
        for name, arguments in found or ():
            known = resolve_tool_name(name, self._specs)
            if known is None and not (self._lenient and form in {"block", "fence"}):
                return []
            calls.append(ToolCall("", known or name, arguments))
        return calls

    def _is_possible(self, form: _Form, text: str) -> bool:
        """Return False if the start of the held text shows that it is no call."""
        if len(text) > _JUDGED_LENGTH or (self._lenient and form in {"block", "fence"}):
            return True
        if form == "json":
            return self._may_be_json(text)
        if form == "react":
            return self._may_be_react(text)
        if form == "function" and (named := _FUNCTION.match(text)):
            return resolve_tool_name(named["name"], self._specs) is not None
        place = 0 if form == "function" else len(self._opening)
        return _STARTED[form].match(text, place) is not None

    def _may_be_json(self, text: str) -> bool:
        start = _JSON_START.match(text)
        if start is None or (start["rest"] is None and start.end() < len(text)):
            return False
        rest: str = start["rest"] or ""
        if not rest:
            return True
        key, closed, _ = rest[1:].partition('"')
        if rest[0] != '"' or not any(
            each == key if closed else each.startswith(key) for each in _JSON_KEYS
        ):
            return False
        name = None if key in {"arguments", "parameters"} else _JSON_NAME.search(text)
        return name is None or resolve_tool_name(name[1], self._specs) is not None

    def _may_be_react(self, text: str) -> bool:
        start = _REACT_START.match(text)
        if start is None:
            return False
        if not start["end"]:
            return start.end() == len(text)
        rest = text[start.end() :]
        mark = "Action Input:"
        is_input = rest.startswith(mark) or mark.startswith(rest)
        return is_input and resolve_tool_name(start["name"] or "", self._specs) is not None


_STARTED: dict[_Form, re.Pattern[str]] = {
    "block": re.compile(rf"\s*(?:\Z|[{{\[]|<|{_NAME}\s*(?:\Z|<))"),
    "fence": re.compile(r"\s*(?:\Z|[{\[])"),
    "function": re.compile(rf'<function(?:=|\s+name=)"?(?:{_NAME})?(?:\Z|"?\s*(?:\Z|>))'),
    "invokes": re.compile(r"\s*(?:\Z|<)"),
    "invoke": re.compile(rf'(?:\Z|"(?:{_NAME})?(?:\Z|"\s*(?:\Z|>)))'),
    "mistral": re.compile(rf"\s*(?:\Z|[{{\[]|{_NAME}\s*(?:\Z|[\[{{]))"),
    "kimi": re.compile(rf"\s*(?:\Z|<|{_NAME})"),
    "deepseek": re.compile(rf"\s*(?:\Z|<|{_NAME})"),
}


def _read_block(body: str, specs: Mapping[str, ToolSpec]) -> list[_Read] | None:
    stripped = body.strip()
    if stripped.startswith("<"):
        return _read_tags(body, specs)
    if stripped[:1] in {"{", "["}:
        return _read_json(body, specs)
    return _read_pairs(stripped)


def _read_json(body: str, _specs: Mapping[str, ToolSpec]) -> list[_Read] | None:
    """Read objects with a name and arguments, in a list or one behind the other."""
    rest = body.strip().removeprefix("<|python_tag|>")
    values: list[Any] = []
    while rest := rest.lstrip(" \t\r\n;"):
        try:
            value, end = _decoder.raw_decode(rest)
        except (ValueError, RecursionError):
            if _END_MARKS.fullmatch(rest):
                break
            return None
        values += value if isinstance(value, list) else [value]
        rest = rest[end:]
    calls = [call for value in values if (call := _call_of(value)) is not None]
    return calls if calls and len(calls) == len(values) else None


def _call_of(value: object) -> _Read | None:
    match value:
        case {"function": dict(inner)}:
            return _call_of(inner)
        case (
            {"name": str(name), **rest}
            | {"tool": str(name), **rest}
            | {"function": str(name), **rest}
        ) if name.strip():
            arguments = next(
                (
                    rest[key]
                    for key in ("arguments", "parameters", "input")
                    if rest.get(key) is not None
                ),
                {},
            )
        case _:
            return None
    if isinstance(arguments, str):  # encoded twice
        try:
            arguments = _decoder.decode(arguments)
        except (ValueError, RecursionError):
            return None
    return _Read(name, arguments) if isinstance(arguments, dict) else None


def _read_tags(body: str, _specs: Mapping[str, ToolSpec]) -> list[_Read] | None:
    """Read function tags or invoke tags with their parameters."""
    calls: list[_Read] = []
    place = 0
    while body[place:].strip():
        opening = _FUNCTION.match(body, place) or _INVOKE.match(body, place)
        if opening is None:
            return None
        read = _read_parameters(body, opening.end())
        if read is None:
            return None
        arguments, place = read
        calls.append(_Read(opening["name"], arguments))
    return calls or None


def _read_parameters(body: str, place: int) -> tuple[dict[str, Any], int] | None:
    """Return the parameters from a place on and where their call ends."""
    arguments: dict[str, Any] = {}
    while True:
        if end := _BODY_END.match(body, place):
            return arguments, end.end()
        opening = _PARAMETER.match(body, place)
        if opening is None:
            return _read_object(body, place) if not arguments else None
        closing = next(
            (
                mark
                for mark in _PARAMETER_END.finditer(body, opening.end())
                if _PARAMETER.match(body, mark.end()) or _BODY_END.match(body, mark.end())
            ),
            None,
        )
        if closing is None:
            return None
        value: Any = body[opening.end() : closing.start()]
        value = value.removeprefix("\n").removesuffix("\n")
        if opening["given"] and "false" in opening["given"]:
            try:
                value = _decoder.decode(value)
            except (ValueError, RecursionError):
                return None
        arguments[opening["name"]] = value
        place = closing.end()


def _read_object(body: str, place: int) -> tuple[dict[str, Any], int] | None:
    """Return the arguments of a function tag as one object, as Llama writes them."""
    rest = body[place:]
    skipped = len(rest) - len(rest.lstrip())
    try:
        value, length = _decoder.raw_decode(rest.lstrip())
    except (ValueError, RecursionError):
        return None
    end = _BODY_END.match(body, place + skipped + length)
    return (value, end.end()) if isinstance(value, dict) and end else None


def _read_pairs(body: str) -> list[_Read] | None:
    """Read the name of a tool with pairs of names and values, as GLM writes them."""
    name = re.match(rf"{_NAME}(?=\s|<|\Z)", body)
    if name is None:
        return None
    arguments: dict[str, Any] = {}
    place = name.end()
    while body[place:].strip():
        pair = _PAIR.match(body, place)
        if pair is None:
            return None
        arguments[pair["key"].strip()] = pair["value"]
        place = pair.end()
    # a word alone is a call only of a model that writes pairs
    return [_Read(name[0], arguments)] if arguments else None


def _read_mistral(body: str, specs: Mapping[str, ToolSpec]) -> list[_Read] | None:
    rest = body.strip().removesuffix("</s>").rstrip()
    if rest[:1] in {"[", "{"}:
        return _read_json(rest, specs)
    calls: list[_Read] = []
    while rest:
        name = _MISTRAL.match(rest)
        if name is None:
            return None
        try:
            value, end = _decoder.raw_decode(rest, name.end())
        except (ValueError, RecursionError):
            return None
        calls.append(_Read(name["name"], value))
        rest = rest[end:].lstrip(" \t\n,").removeprefix("[TOOL_CALLS]").lstrip()
    return calls or None


def _read_marked(
    body: str, opening: re.Pattern[str], closing: re.Pattern[str]
) -> list[_Read] | None:
    """Read calls between marks: a name, then an object."""
    calls: list[_Read] = []
    place = 0
    while body[place:].strip():
        mark = opening.match(body, place)
        if mark is None:
            return None
        try:
            value, end = _decoder.raw_decode(body, mark.end())
        except (ValueError, RecursionError):
            return None
        behind = closing.match(body, end)
        if not isinstance(value, dict) or behind is None:
            return None
        calls.append(_Read(mark["name"], value))
        place = behind.end()
    return calls or None


def _read_kimi(body: str, _specs: Mapping[str, ToolSpec]) -> list[_Read] | None:
    return _read_marked(body, _KIMI, _KIMI_END)


def _read_deepseek(body: str, _specs: Mapping[str, ToolSpec]) -> list[_Read] | None:
    return _read_marked(body, _DEEPSEEK, _DEEPSEEK_END)


def _read_react(body: str, specs: Mapping[str, ToolSpec]) -> list[_Read] | None:
    """Read an action with its input; results that the model made up behind it are left out."""
    action = _REACT.match(body)
    if action is None:
        return None
    name, given = action["name"], action["input"].strip()
    if given[:1] in {"{", "["}:
        try:
            arguments, end = _decoder.raw_decode(given)
        except (ValueError, RecursionError):
            return None
        is_whole = isinstance(arguments, dict) and not given[end:].strip()
        return [_Read(name, arguments)] if is_whole else None
    spec = specs.get(resolve_tool_name(name, specs) or "")
    needed = spec.parameters.get("required") if spec is not None else None
    if not given or "\n" in given or not isinstance(needed, list) or len(needed) != 1:
        return None
    return [_Read(name, {needed[0]: given})]  # the form of tools with one input


_Reader = Callable[[str, Mapping[str, ToolSpec]], list[_Read] | None]
_READERS: dict[_Form, _Reader] = {
    "block": _read_block,
    "fence": _read_json,
    "function": _read_tags,
    "invokes": _read_tags,
    "invoke": _read_tags,
    "mistral": _read_mistral,
    "kimi": _read_kimi,
    "deepseek": _read_deepseek,
    "json": _read_json,
    "react": _read_react,
}


def _begun(text: str) -> int:
    """Return how many characters at the end may be the start of a call."""
    tail = text[-_MAX_OPENING_LENGTH:]
    for place, char in enumerate(tail):
        starting = _BY_START.get(char)
        if starting and any(each.startswith(tail[place:]) for each in starting):
            return len(tail) - place
    return 0


def _is_balanced(body: str) -> bool:
    """Return True if every quotation mark in JSON is closed: the end is not inside of a text."""
    return re.sub(r"\\.", "", body, flags=re.DOTALL).count('"') % 2 == 0

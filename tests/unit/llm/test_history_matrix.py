"""Each history as every model writes it, sent to every other model: its API accepts the request.

The histories go through the Turn, as they do in a run, and once more as plain messages, in which
nothing is guaranteed. A validator of `request_validators` stands for each API.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from internal.agent.domain.messages import (
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    user_message,
    without_call_ids,
)
from internal.agent.domain.react.context_window import MergedMessages
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelRequest
from internal.llm import anthropic_request, openai_request
from internal.llm.lessons.prepared_request import prepare_request
from internal.llm.model_family import is_same_family
from internal.model_providers.dialect import Dialect
from internal.model_providers.registry import find_provider
from tests.support.anthropic_server import signature_of
from tests.support.images import an_image, in_base64
from tests.support.request_validators import (
    Validator,
    check_anthropic,
    check_deepseek,
    check_gemini,
    check_kimi,
    check_kimi_k2,
    check_mistral,
    check_older_mistral,
    check_openai,
    check_openrouter,
    check_qwen,
    check_strict_template,
    check_unsigned_messages_api,
)
from tests.support.turn_driver import TASK, next_ask, run_config, start_turn
from tests.support.weighed_messages import weighed

SEALED = "c3ViIHJvc2E"
"""Part of every opaque field: no other model gets it."""
SIGNATURE = f"gemini-{SEALED}"
PICTURE = an_image(b"heron")
LOOK = ToolSpec("look", "Look at a thing.", {"type": "object", "properties": {}}, "read")
TOOLS = (LOOK, *run_config().tools)
ODD_NAMES = ("functions.read_file", "look at", "读取", "x" * 100, "")


class Author(NamedTuple):
    """A model and how it writes: its reasoning before calls, and the id and fields of a call."""

    origin: str
    thoughts: tuple[Thinking, ...]
    call_id: Callable[[int], str]
    opaque: Mapping[str, Any] | None = None

    def call(self, number: int, name: str, arguments: dict[str, Any] | None = None) -> ToolCall:
        opaque = dict(self.opaque) if self.opaque and number % 2 == 0 else None
        return ToolCall(self.call_id(number), name, arguments or {}, opaque=opaque)


THOUGHT = "I list the birds."
DETAILS = [
    {"type": "reasoning.text", "text": THOUGHT, "format": "openrouter-x", "index": 0},
    {"type": "reasoning.encrypted", "data": SEALED, "format": "openrouter-x", "index": 1},
]
AUTHORS = {
    "claude": Author(
        "anthropic:claude-x",
        (Thinking(THOUGHT, signature_of(THOUGHT)), Thinking("", redacted=SEALED)),
        "toolu_01AbCdEfGhIjKlMnOpQr{:02}".format,
    ),
    "deepseek messages": Author(
        "anthropic:deepseek-x", (Thinking(THOUGHT),), "call_00_{:020}".format
    ),
    "openai": Author("openai:gpt-x", (), "call_{:024}".format),
    "gemini": Author(
        "google:gemini-3-x",
        (),
        "function-call-{:020}".format,
        {"extra_content": {"google": {"thought_signature": SIGNATURE}}},
    ),
    "openrouter": Author(
        "openrouter:x/y",
        (Thinking(THOUGHT, opaque={"reasoning_details": DETAILS}),),
        "tool_{}".format,
    ),
    "mistral": Author("mistral:mistral-x", (), "D681Pev{:02}".format),
    "deepseek": Author("deepseek:deepseek-x", (Thinking(THOUGHT),), "call_01_{:020}".format),
    "kimi": Author("moonshot:kimi-k2-x", (Thinking(THOUGHT),), "functions.look:{}".format),
    "qwen": Author("qwen:qwen-x", (Thinking(THOUGHT),), "call_{:020}".format),
    "vllm": Author("openai:gemma-x", (), "chatcmpl-tool-{:032}".format),
    "a server without ids": Author("ollama:llama-x", (), lambda _: ""),
    "a server with equal ids": Author("ollama:other-x", (), lambda _: "call_0"),
    "an older Larkspur": Author("", (Thinking(THOUGHT),), lambda _: ""),
}


class Reader(NamedTuple):
    """A model, the dialect that Larkspur speaks with it, and the validator of its requests."""

    origin: str
    dialect: Dialect
    check: Validator
    encode: Callable[[ModelRequest, Dialect], bytes] = openai_request.encode_request


MISTRAL = Dialect(call_ids="nine", user_after_results=False)
SKIP = "skip_thought_signature_validator"
READERS = {
    "claude": Reader(
        "anthropic:claude-x", Dialect(), check_anthropic, anthropic_request.encode_request
    ),
    "deepseek messages": Reader(
        "anthropic:deepseek-x",
        Dialect(resend_reasoning=True),
        check_unsigned_messages_api,
        anthropic_request.encode_request,
    ),
    "openai": Reader("openai:gpt-x", Dialect(), check_openai),
    "gemini": Reader("google:gemini-3-x", Dialect(missing_signature=SKIP), check_gemini),
    "openrouter": Reader("openrouter:x/y", Dialect(), check_openrouter),
    "mistral": Reader("mistral:mistral-x", MISTRAL, check_mistral),
    "older mistral": Reader(
        "mistral:open-mistral-x",
        msgspec.structs.replace(MISTRAL, text_with_calls=False),
        check_older_mistral,
    ),
    "deepseek": Reader(
        "deepseek:deepseek-x", Dialect(resend_reasoning=True, pictures=False), check_deepseek
    ),
    "kimi": Reader("moonshot:kimi-k2-x", Dialect(resend_reasoning=True), check_kimi_k2),
    "qwen": Reader("qwen:qwen-x", Dialect(), check_qwen),
    "vllm": Reader(
        "openai:gemma-x", Dialect(tools=False, system_role=False), check_strict_template
    ),
}


REGISTERED = {
    "anthropic": check_anthropic,
    "openai": check_openai,
    "deepseek": check_deepseek,
    "openrouter": check_openrouter,
    "qwen": check_qwen,
    "kimi": check_kimi,
    "mistral": check_mistral,
}
"""Providers of the registry, which has their dialects."""


def registered(name: str) -> Reader:
    provider = find_provider(name)
    assert provider is not None
    dialect = provider.dialect_of(provider.default_model)
    if name == "deepseek":  # learned from the first refusal: the registry does not say it
        dialect = msgspec.structs.replace(dialect, pictures=False)
    module = anthropic_request if name == "anthropic" else openai_request
    origin = f"{name}:{provider.default_model}"
    return Reader(origin, dialect, REGISTERED[name], module.encode_request)


def history_of_texts(author: Author) -> list[Message]:
    turn = begin(author, [user_message("Hello."), said(author, Text("Hi."))])
    return [*next_ask(turn).messages]


def history_of_calls(author: Author) -> list[Message]:
    """Calls with odd names, without text and with a blank one, failures, and results of nothing."""
    turn = begin(author)
    reply(turn, author, Text("I look."), author.call(0, "look"), author.call(1, "look", {"a": [1]}))
    results(turn, "a heron", "")
    odd = (author.call(2 + n, name) for n, name in enumerate(ODD_NAMES))
    reply(turn, author, Text(" \n"), *odd, author.call(8, "look"))
    results(turn, failed=True)
    reply(turn, author, ToolCall(author.call_id(10), "look", {}, '{"a": '), author.call(12, "look"))
    results(turn, " ")
    return [*next_ask(turn).messages]


def history_of_pictures(author: Author) -> list[Message]:
    turn = begin(author, [user_message("What is this?", [PICTURE]), said(author, Text("A heron."))])
    reply(turn, author, author.call(0, "look"), author.call(1, "look"))
    results(turn, "a picture", images=(PICTURE, an_image(b"lost")))
    reply(turn, author, author.call(2, "look"))
    results(turn, "", images=(PICTURE,))
    return [*next_ask(turn).messages]


def history_with_steering(author: Author) -> list[Message]:
    """A person writes between the steps, also while a call runs."""
    turn = begin(author)
    reply(turn, author, author.call(0, "look"))
    turn.add_user_message("Only herons.")
    results(turn, "a heron", images=(PICTURE,))
    turn.add_user_message("And egrets.", [PICTURE])
    reply(turn, author, Text("Yes."), author.call(1, "look"))
    results(turn)
    turn.add_user_message("Go on.")
    return [*next_ask(turn).messages]


def history_of_overlapping_runs(author: Author) -> list[Message]:
    """Two runs of a session that did not know the ids of each other, and a third one."""
    earlier: list[Message] = []
    for run in ("run-a", "run-b"):
        turn = begin(author, run=run)
        reply(turn, author, author.call(0, "look"))
        results(turn, run)
        reply(turn, author, Text("Done."))
        earlier += turn.run_messages()
    turn = begin(author, earlier, run="run-c")
    reply(turn, author, author.call(0, "look"))
    results(turn)
    return [*next_ask(turn).messages]


def history_in_a_small_window(author: Author) -> list[Message]:
    """Long results are shortened, calls of earlier runs left out, and a refused result replaced."""
    earlier = begin(author, run="run-a")
    reply(earlier, author, author.call(0, "look"))
    results(earlier, "heron " * 5_000)
    reply(earlier, author, Text("Done."))
    turn = begin(author, earlier.run_messages(), run="run-b")
    for number in (2, 4, 6):
        reply(turn, author, author.call(number, "look"), author.call(number + 1, "look"))
        results(turn, "egret " * 2_000)
    assert turn.fit_context(6_000) is not None
    refused = (turn.messages[-2].calls[0].call_id,)
    turn.window = msgspec.structs.replace(turn.window, refused=refused)
    return [*next_ask(turn).messages]


def damaged_history(author: Author) -> list[Message]:
    """Return a history that no Turn has: single calls and results, adjacent roles, and no end."""
    call, other, third = (
        msgspec.structs.replace(
            author.call(n, "look"), call_id=f"run-1-{n}", wire_id=author.call_id(n)
        )
        for n in range(3)
    )
    return [
        said(author, Text("Hello.")),
        Message("user", (ToolResult("gone", "a result"), Text("One."))),
        user_message("Two."),
        said(author, *author.thoughts, call, other),
        Message("user", (ToolResult(other.call_id, "two"), ToolResult(other.call_id, "twice"))),
        said(author, Text(" ")),
        said(author, Text("Three.")),
        said(author, *author.thoughts, third),
        said(author, Text("Four.")),
    ]


HISTORIES = (
    history_of_texts,
    history_of_calls,
    history_of_pictures,
    history_with_steering,
    history_of_overlapping_runs,
    history_in_a_small_window,
    damaged_history,
)


@pytest.mark.parametrize(
    "reader", [*READERS.values(), *map(registered, REGISTERED)], ids=[*READERS, *REGISTERED]
)
@pytest.mark.parametrize("author", AUTHORS.values(), ids=AUTHORS)
def test_the_history_of_each_model_is_accepted_by_each_other(
    author: Author, reader: Reader
) -> None:
    for make in HISTORIES:
        messages = make(author)
        for sent in versions(messages, is_damaged=make is damaged_history):
            body = encode(sent, reader)
            reader.check(body)
            check_contents(body, messages, author, reader)


@pytest.mark.parametrize("name", READERS.keys() & AUTHORS.keys())
def test_a_model_gets_back_what_it_wrote(name: str) -> None:
    author, reader = AUTHORS[name], READERS[name]
    turn = begin(author)
    reply(turn, author, author.call(0, "look"), author.call(1, "look"))
    results(turn)
    text = json.dumps(encode([*next_ask(turn).messages], reader), ensure_ascii=False)
    if reader.dialect.tools:
        assert text.count(json.dumps(author.call_id(0))) == 2
        assert text.count(json.dumps(author.call_id(1))) == 2
    if reader.dialect.resend_reasoning or name in {"claude", "openrouter"}:
        assert THOUGHT in text
    if name in {"claude", "openrouter", "gemini"}:
        assert text.count(SEALED) == 1


def test_the_same_request_has_the_same_ids_in_any_process() -> None:
    """A resumed run and a fork send the stored messages."""
    for author in AUTHORS.values():
        messages = history_of_overlapping_runs(author)
        stored = msgspec.json.decode(msgspec.json.encode(messages), type=list[Message])
        for reader in READERS.values():
            assert encode(stored, reader) == encode(messages, reader)


def begin(author: Author, history: Sequence[Message] = (), run: str = "run-1") -> Turn:
    config = msgspec.structs.replace(run_config(), run_id=run, model=author.origin, tools=TOOLS)
    return start_turn(config, history)


def said(author: Author, *parts: Part) -> Message:
    return Message("assistant", parts, author.origin)


def reply(turn: Turn, author: Author, *parts: Part) -> None:
    thoughts = author.thoughts if any(isinstance(part, ToolCall) for part in parts) else ()
    given = without_call_ids((*thoughts, *parts))
    turn.add_reply(given, "m", Usage(1, 1), 0.0, origin=author.origin)


def results(turn: Turn, *texts: str, failed: bool = False, images: tuple[Image, ...] = ()) -> None:
    """Give a result to each call that has none: a text of `texts`, or "ok"."""
    given = iter(texts)
    assert turn.calls
    for call in turn.calls:
        text = next(given, "ok")
        turn.add_tool_result(ToolResult(call.call_id, text, failed, images))


def versions(messages: list[Message], *, is_damaged: bool) -> Iterator[Sequence[Message]]:
    """Yield a history as a run sends it, twice: the second time with kept encodings, and plain."""
    if not is_damaged:
        merged = MergedMessages()
        merged.add(weighed(messages))
        kept = merged.request()
        yield kept
        yield kept
    yield messages


def encode(messages: Sequence[Message], reader: Reader) -> dict[str, Any]:
    model = reader.origin.partition(":")[2]
    request = ModelRequest(
        model,
        "You count birds.",
        messages,
        tools=TOOLS,
        images=in_base64([b"heron"]),
        origin=reader.origin,
    )
    prepared = prepare_request(request, reader.dialect)
    body: dict[str, Any] = json.loads(reader.encode(prepared.request, reader.dialect))
    return body


def check_contents(
    body: Mapping[str, Any], messages: Sequence[Message], author: Author, reader: Reader
) -> None:
    """Check that nothing of the history is missing, and nothing opaque goes to another model."""
    sent = json.dumps(body, ensure_ascii=False)
    for text in (text for message in messages for text in texts_of(message)):
        assert json.dumps(text, ensure_ascii=False)[1:-1] in sent
    if author.origin and not is_same_family(author.origin, reader.origin):
        assert SEALED not in sent
        assert THOUGHT not in sent
    ids, answered = ids_of(body)
    assert ids == answered
    assert len(ids) == len(set(ids))


def texts_of(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Text | ToolResult) and part.text.strip():
            yield part.text.strip()


def ids_of(body: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the ids of the calls and the ids of the results, in either wire format."""
    calls, answered = [], []
    for message in body["messages"]:
        calls += [call["id"] for call in message.get("tool_calls") or ()]
        if message["role"] == "tool":
            answered.append(message["tool_call_id"])
        for block in message["content"] if isinstance(message["content"], list) else ():
            calls += [block["id"]] if block["type"] == "tool_use" else []
            answered += [block["tool_use_id"]] if block["type"] == "tool_result" else []
    return calls, answered


def test_the_task_is_in_each_history() -> None:
    for make in HISTORIES[:-1]:
        assert any(TASK in message.text for message in make(AUTHORS["openai"]))

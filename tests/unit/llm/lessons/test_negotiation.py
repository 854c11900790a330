"""Refused requests of both clients: the next request, and the stored lessons."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from internal.agent.domain.errors import ContextTooLong, ModelError, ModelRejected
from internal.agent.domain.left_out import RequestLoss
from internal.agent.domain.messages import (
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    user_message,
)
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.llm import ModelRequest, ModelResponse, ModelStreamEvent
from internal.llm.anthropic import AnthropicModel
from internal.llm.errors import ProviderInfo
from internal.llm.lessons.book import LessonBook, server_at
from internal.llm.lessons.negotiation import stated_version
from internal.llm.openai import OpenAIModel, Service
from internal.llm.transport import ApiKey
from internal.model_providers.dialect import Dialect
from tests.support.anthropic_server import signature_of
from tests.support.images import an_image, in_base64
from tests.support.openai_server import ScriptedOpenAI
from tests.support.refusing_server import (
    RefusingAnthropic,
    RefusingOpenAI,
    Rule,
    offered_tools,
    picture_count,
    refuse_pictures,
    refuse_tools,
)
from tests.support.scripted_model import Call, Fault, Reply

Server = RefusingOpenAI | RefusingAnthropic
Model = OpenAIModel | AnthropicModel
BLIND = refuse_pictures("qwen is not a multimodal model")
ACME = Service("acme", ProviderInfo("Acme", "ACME_API_KEY"), "http://127.0.0.1:9/v1")


def tool(name: str) -> ToolSpec:
    return ToolSpec(name, "A tool.", {"type": "object", "properties": {}}, "read")


def make(*messages: Message, **fields: Any) -> ModelRequest:
    sent = messages or (user_message("hi"),)
    return ModelRequest(**{"model": "acme-1", "system": "", "messages": sent, **fields})


def shown(*contents: bytes, text: str = "what is this?") -> ModelRequest:
    message = user_message(text, [an_image(each) for each in contents])
    return make(message, images=in_base64(contents))


@asynccontextmanager
async def client_of(
    kind: str,
    rule: Rule,
    *,
    book: LessonBook | None = None,
    status: int = 400,
    script: Sequence[Reply] = (Reply("fine"),) * 9,
) -> AsyncGenerator[tuple[Server, Model]]:
    key = ApiKey("key-for-tests")
    server: Server
    model: Model
    if kind == "openai":
        server = RefusingOpenAI(rule, script, status=status)
    else:
        server = RefusingAnthropic(rule, script, status=status)
    async with server:
        if kind == "openai":
            model = OpenAIModel(ACME, key, base_url=server.base_url, lessons=book)
        else:
            model = AnthropicModel(key, base_url=server.base_url, lessons=book)
        try:
            yield server, model
        finally:
            await model.close()


async def ask(model: Model, request: ModelRequest) -> tuple[list[RequestLoss], ModelResponse]:
    pieces: list[ModelStreamEvent] = [piece async for piece in model.stream(request)]
    reply = pieces[-1]
    assert isinstance(reply, ModelResponse)
    return [each for each in pieces if isinstance(each, RequestLoss)], reply


both = pytest.mark.parametrize("kind", ["openai", "anthropic"])


@both
async def test_pictures_are_left_out_once_refused_and_people_are_told_of_new_ones(
    kind: str,
) -> None:
    async with client_of(kind, BLIND) as (server, model):
        notes, reply = await ask(model, shown(b"a", b"b"))
        assert notes == [RequestLoss("pictures", 2)]
        assert reply.parts == (Text("fine"),)
        assert "this model cannot see pictures" in str(server.requests[0])

        earlier = shown(b"a", b"b")
        answered = (*earlier.messages, Message("assistant", (Text("fine"),)))
        later = make(*answered, user_message("and 6*7?"), images=earlier.images)
        assert (await ask(model, later))[0] == []  # the pictures of old messages are known
        assert (await ask(model, shown(b"c")))[0] == [RequestLoss("pictures", 1)]
        assert len(server.refused) == 1


@both
async def test_an_error_that_is_not_about_the_request_changes_nothing(kind: str) -> None:
    async with client_of(kind, lambda _: "no such thing") as (server, model):
        with pytest.raises(ModelRejected, match="no such thing"):
            await ask(model, shown(b"a"))
        assert len(server.refused) == 1


async def test_a_refusal_that_is_no_help_is_raised_and_teaches_nothing() -> None:
    book = LessonBook()
    async with client_of("openai", lambda _: "this is not a multimodal model", book=book) as (
        server,
        model,
    ):
        with pytest.raises(ModelRejected):
            await ask(model, shown(b"a"))
        with pytest.raises(ModelRejected):
            await ask(model, make())  # it has no picture to leave out
        assert [picture_count(body) for body in server.refused] == [1, 0, 0]
        assert book.list_of(server_at("acme", server.base_url), "acme-1") == []


async def test_a_server_error_about_pictures_is_no_outage() -> None:
    words = "image input is not supported - hint: you may need to provide the mmproj"
    async with client_of("openai", refuse_pictures(words), status=500) as (_, model):
        notes, _ = await ask(model, shown(b"a"))
        assert notes == [RequestLoss("pictures", 1)]


async def test_lessons_are_for_one_model_of_one_server() -> None:
    book = LessonBook()
    async with client_of("openai", BLIND, book=book) as (server, model):
        await ask(model, shown(b"a"))
        [lesson] = book.list_of(server_at("acme", server.base_url), "acme-1")
        assert (lesson.kind, lesson.change) == ("picture", {"pictures": False})
        assert "not a multimodal model" in lesson.words
        assert lesson.learned
        assert book.list_of(server_at("acme", server.base_url), "acme-2") == []
        assert book.list_of(server_at("other", server.base_url), "acme-1") == []


async def test_a_change_survives_an_outage_of_the_server() -> None:
    outage = Reply("", fault=Fault("status", status=503, message="busy"))
    script = [outage, Reply("fine")]
    async with client_of("openai", BLIND, script=script) as (server, model):
        with pytest.raises(ModelError):
            await ask(model, shown(b"a"))
        notes, _ = await ask(model, shown(b"a"))
        assert notes == [RequestLoss("pictures", 1)]
        assert len(server.refused) == 1


PING, ODD = "mcp__case__ping", "mcp__case__odd"
OFFERED = (tool("read_file"), tool(PING), tool(ODD), tool("plan"))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("openai", f"Invalid schema for function '{ODD}': array schema missing items."),
        ("openai", "Unknown name at 'tools[0].function_declarations[2].parameters'"),
        ("anthropic", "tools.2.custom.input_schema: JSON schema is invalid."),
        ("openai", "tools.function.parameters is not a valid moonshot flavored json schema"),
    ],
)
async def test_a_refused_tool_costs_that_tool_alone(kind: str, words: str) -> None:
    book = LessonBook()
    async with client_of(kind, refuse_tools(ODD, words=words), book=book) as (server, model):
        notes, _ = await ask(model, make(tools=OFFERED))
        assert notes == [RequestLoss("tool", name=ODD)]
        notes, _ = await ask(model, make(tools=OFFERED))
        assert notes == []
        assert len(server.refused) == 1
        assert all(offered_tools(body) == ["read_file", PING, "plan"] for body in server.requests)
        [lesson] = book.list_of(server_at(model.provider, server.base_url), "acme-1")
        assert lesson.name == ODD


async def test_an_unnamed_tool_among_many_is_found_while_requests_are_answered() -> None:
    words = "tools.function.parameters is not a valid moonshot flavored json schema"
    many = tuple(tool(f"mcp__s{n % 4}__t{n}") for n in range(40))
    rule = refuse_tools("mcp__s1__t5", words=words)
    async with client_of("openai", rule) as (server, model):
        for _ in range(9):
            await ask(model, make(tools=(*many, tool("plan"))))
        assert len(offered_tools(server.requests[-1])) == 40
        assert all("plan" in offered_tools(body) for body in server.requests)
        assert len(server.refused) <= 6


async def test_no_more_tools_are_offered_than_the_server_takes() -> None:
    def rule(body: dict[str, Any]) -> str:
        too_many = len(offered_tools(body)) > 3
        words = "Invalid 'tools': array too long. Expected an array with maximum length 3"
        return words if too_many else ""

    tools = (*(tool(f"mcp__s__t{n}") for n in range(4)), tool("plan"), tool("read_file"))
    async with client_of("openai", rule) as (server, model):
        await ask(model, make(tools=tools))
        assert offered_tools(server.requests[0]) == ["mcp__s__t0", "plan", "read_file"]


@both
async def test_the_oldest_pictures_go_first_when_a_body_is_too_large(kind: str) -> None:
    def rule(body: dict[str, Any]) -> str:
        return "Request Entity Too Large" if len(str(body)) > 250_000 else ""

    book = LessonBook()
    old, new = b"o" * 200_000, b"n" * 30_000
    async with client_of(kind, rule, status=413, book=book) as (server, model):
        notes, _ = await ask(model, shown(old, new))
        assert notes == [RequestLoss("large_pictures", 1)]
        assert picture_count(server.requests[0]) == 1
        assert in_base64([new]).popitem()[1] in str(server.requests[0])
        notes, _ = await ask(model, shown(old, new))
        assert len(server.refused) == 1
        [lesson] = book.list_of(server_at(model.provider, server.base_url), "another-model")
        assert lesson.kind == "body_size"


async def test_a_body_without_pictures_is_too_long_for_the_context() -> None:
    async with client_of("openai", lambda _: "too large", status=413) as (server, model):
        with pytest.raises(ContextTooLong):
            await ask(model, make())
        assert len(server.refused) == 1


async def test_stale_thinking_is_left_out_of_this_request_only() -> None:
    def history(signature: str) -> list[Message]:
        thought = Thinking("hm", signature=signature)
        answer = Message("assistant", (thought, Text("ok")))
        return [user_message("hi"), answer, user_message("go")]

    book = LessonBook()
    # the server refuses signatures that are not its own
    async with client_of("anthropic", lambda _: "", book=book) as (server, model):
        await ask(model, make(*history("stale")))
        await ask(model, make(*history(signature_of("hm"))))
        assert ["thinking" in str(body["messages"]) for body in server.requests] == [False, True]
        assert book.list_of(server_at("anthropic", server.base_url), "acme-1") == []


async def test_long_tool_names_are_shortened_both_ways() -> None:
    name = f"mcp__case__{'long' * 10}"
    history = (
        user_message("hi"),
        Message("assistant", (ToolCall("c1", name, {}),)),
        Message("user", (ToolResult("c1", "seen"),)),
    )

    def call_the_only_tool(body: dict[str, Any]) -> Reply:
        return Reply(calls=[Call(offered_tools(body)[0])])

    async with ScriptedOpenAI(call_the_only_tool) as server:
        service = ACME._replace(dialect=Dialect(max_tool_name=30))
        model = OpenAIModel(service, ApiKey("key-for-tests"), base_url=server.base_url)
        _, reply = await ask(model, make(*history, tools=(tool(name),)))
        await model.close()
    [body] = server.requests
    [short] = offered_tools(body)
    assert len(short) == 30
    assert body["messages"][1]["tool_calls"][0]["function"]["name"] == short
    [called] = reply.parts
    assert isinstance(called, ToolCall)
    assert called.name == name


@pytest.mark.parametrize(
    ("headers", "version"),
    [
        ({"server": "nginx"}, ""),
        ({"server": "vllm/0.9.1"}, "vllm/0.9.1"),
        ({"openai-version": "2020-10-01", "server": "cloudflare"}, "2020-10-01"),
        ({}, ""),
    ],
)
def test_a_version_is_what_the_server_states(headers: dict[str, str], version: str) -> None:
    assert stated_version(headers) == version

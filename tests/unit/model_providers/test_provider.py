"""Request fields for `llm.thinking`, and requests after a refusal of these fields."""

import json
from typing import Any

import pytest

from internal.agent.domain.messages import Text, user_message
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.llm import ModelRequest, ModelResponse
from internal.llm.model_factory import build_model
from internal.model_providers.registry import PROVIDERS, ThinkingLevel, find_provider
from internal.settings.llm import LlmSettings
from tests.support.anthropic_server import ScriptedAnthropic
from tests.support.openai_server import Manners, ScriptedOpenAI
from tests.support.scripted_model import Fault, Reply, ScriptedServer

SHOWN = {"type": "adaptive", "display": "summarized"}
LEVELS: tuple[ThinkingLevel, ...] = ("off", "low", "medium", "high")
TOOL = ToolSpec("list_dir", "Lists.", {"type": "object", "properties": {}}, "read")


@pytest.mark.parametrize(
    ("provider", "model", "level", "fields"),
    [
        ("anthropic", "claude-haiku-5-5", "off", {"thinking": {"type": "disabled"}}),
        ("anthropic", "claude-sonnet-5-5", "off", {"thinking": {"type": "between_tools"}}),
        # it cannot be told not to think
        (
            "anthropic",
            "claude-opus-5-5",
            "off",
            {"thinking": SHOWN, "output_config": {"effort": "low"}},
        ),
        (
            "anthropic",
            "claude-opus-4-5-20251101",
            "medium",
            {"thinking": {"type": "enabled", "budget_tokens": 8_192}},
        ),
        ("anthropic", "claude-opus-4-8", "off", {}),
        ("anthropic", "claude-3-haiku", "high", {}),
        (
            "bedrock",
            "us.anthropic.claude-sonnet-5-5-v1:0",
            "high",
            {"thinking": SHOWN, "output_config": {"effort": "high"}},
        ),
        ("openai", "gpt-6-sol", "off", {"reasoning_effort": "none"}),
        ("openai", "gpt-5-nano", "off", {"reasoning_effort": "minimal"}),
        ("openai", "my-model", "high", {}),
        ("gemini", "gemini-3.8-flash", "off", {"reasoning_effort": "minimal"}),
        ("gemini", "gemini-2.5-flash", "off", {"reasoning_effort": "none"}),
        ("qwen", "qwen3.8-max", "off", {"enable_thinking": False}),
        ("qwen", "qwen3.8-max", "high", {"enable_thinking": True, "thinking_budget": 32_768}),
        ("kimi", "kimi-k3.1-pro", "high", {"reasoning_effort": "max"}),
        ("kimi", "kimi-k2.6", "off", {"thinking": {"type": "disabled"}}),
        ("kimi", "kimi-k2.7-code", "off", {}),
        ("glm", "glm-5.3", "off", {"reasoning_effort": "low"}),
        ("glm", "glm-4.7", "off", {"thinking": {"type": "disabled"}}),
        ("minimax", "MiniMax-M3.1-Flash", "off", {"reasoning_effort": "low"}),
        ("minimax", "MiniMax-M3", "high", {"thinking": {"type": "adaptive"}}),
        ("ark", "doubao-seed-1-8-251228", "off", {"thinking": {"type": "disabled"}}),
        ("deepseek", "deepseek-flash", "off", {"thinking": {"type": "disabled"}}),
        ("mistral", "mistral-medium-3-5", "low", {"reasoning_effort": "high"}),
        ("mistral", "codestral-latest", "low", {}),
        ("xai", "grok-4.7", "medium", {"reasoning_effort": "medium"}),
        ("openrouter", "any/model", "off", {"reasoning": {"effort": "none"}}),
        ("ollama", "qwen3:8b", "off", {"reasoning_effort": "none"}),
    ],
)
def test_a_level_is_said_in_the_fields_of_the_model(
    provider: str, model: str, level: ThinkingLevel, fields: dict[str, Any]
) -> None:
    found = find_provider(provider)
    assert found is not None
    assert dict(found.thinking_fields(model, level)) == fields


def test_without_the_setting_no_model_gets_a_field() -> None:
    for provider in PROVIDERS:
        for model in (provider.default_model, *(info.name for info in provider.models)):
            assert provider.thinking_fields(model, None) == {}
            info = provider.find_model(model)
            own = {} if info is None else dict(info.fields)
            assert json.loads(provider.dialect_of(model).extra_fields or "{}") == own


def test_every_dialect_of_the_registry_can_be_made() -> None:
    for provider in PROVIDERS:
        for model in (provider.default_model, *(info.name for info in provider.models)):
            for level in LEVELS:
                dialect = provider.dialect_of(model, level)
                assert bool(dialect.extra_fields) is bool(provider.thinking_fields(model, level))


def test_models_without_sight_are_known() -> None:
    glm = find_provider("glm")
    assert glm is not None
    assert not glm.dialect_of("glm-5.3").pictures
    assert glm.dialect_of("glm-4.6v-flash").pictures
    assert glm.dialect_of("glm-of-tomorrow").pictures


async def ask_twice(server: ScriptedServer, provider: str, model: str) -> list[dict[str, Any]]:
    """Ask the same client twice and return the bodies that the server took."""
    settings = LlmSettings.model_validate(
        {
            "provider": provider,
            "model": model,
            "api_key": "k",
            "base_url": server.base_url,
            "thinking": "high",
        }
    )
    client = build_model(settings)
    for _ in range(2):
        request = ModelRequest(model, "", (user_message("hello"),), tools=(TOOL,))
        *_, reply = [piece async for piece in client.stream(request)]
        assert isinstance(reply, ModelResponse)
        assert reply.parts == (Text("well"),)
    await client.close()
    return server.requests


async def test_fields_that_a_server_does_not_know_are_dropped_once() -> None:
    async with ScriptedOpenAI([Reply(text="well")] * 2) as server:  # knows no `reasoning`
        requests = await ask_twice(server, "openrouter", "any/model")
        assert ["reasoning" in request for request in requests] == [False, False]
        assert server.count == 3


async def test_effort_gives_way_to_tools_where_a_model_takes_only_one() -> None:
    manners = Manners(limit="max_completion_tokens", no_effort=True)
    async with ScriptedOpenAI([Reply(text="well")] * 2, manners=manners) as server:
        requests = await ask_twice(server, "openai", "gpt-6-sol")
        assert [request["reasoning_effort"] for request in requests] == ["none", "none"]
        assert server.count == 3


async def test_claude_that_takes_no_effort_is_asked_without() -> None:
    refusal = Fault(
        "status", status=400, message="output_config.effort: not supported by this model", times=1
    )
    replies = [Reply(text="well", fault=refusal), Reply(text="well")]
    async with ScriptedAnthropic(replies) as server:
        requests = await ask_twice(server, "anthropic", "claude-sonnet-5-5")
        assert ["output_config" in request for request in requests] == [True, False, False]
        assert [request["thinking"] for request in requests] == [SHOWN] * 3

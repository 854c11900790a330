"""Building the model client from the settings."""

import asyncio
import subprocess
import sys

import pytest

from internal.agent.domain.errors import (
    InvalidRequest,
    ModelKeyRejected,
)
from internal.agent.domain.messages import Text, user_message
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.llm import (
    ModelRequest,
    ModelResponse,
)
from internal.llm.model_factory import build_model
from internal.settings.llm import LlmSettings
from tests.support.anthropic_server import ScriptedAnthropic
from tests.support.openai_server import Manners, ScriptedOpenAI
from tests.support.scripted_model import Fault
from tests.support.scripted_model import Reply as Scripted

TOOLS = tuple(
    ToolSpec(name, name, {"type": "object", "properties": {}}, "read")
    for name in ("plan", "update_plan", "list_dir")
)


async def test_a_fallback_of_another_provider_has_its_own_key_and_address() -> None:
    busy = Fault("status", status=529)
    async with (
        ScriptedAnthropic([Scripted(fault=busy)] * 3, api_key="claude's") as claude,
        ScriptedOpenAI([Scripted(fault=busy)] * 3, api_key="deep's") as deep,
        ScriptedOpenAI([Scripted(text="at last")], manners=Manners(no_key=True)) as home,
    ):
        settings = LlmSettings.model_validate(
            {
                "provider": "anthropic",
                "api_key": "claude's",
                "base_url": claude.base_url,
                "keys": {"deepseek": "deep's"},
                "base_urls": {"deepseek": deep.base_url, "ollama": home.base_url},
                "max_retries": 0,
                "fallbacks": ("deepseek:deepseek-flash", "ollama:qwen3:8b"),
            }
        )
        model = build_model(settings)
        model.check_key()
        request = ModelRequest("claude-x", "", (user_message("hello"),), tools=TOOLS)
        *_, reply = [piece async for piece in model.stream(request)]
        assert isinstance(reply, ModelResponse)
        assert (reply.parts, reply.model) == ((Text("at last"),), "qwen3:8b")
        models = [server.requests[0]["model"] for server in (claude, deep, home)]
        assert models == ["claude-x", "deepseek-flash", "qwen3:8b"]
        await model.close()


async def test_text_tool_calls_apply_to_the_primary_provider_only() -> None:
    async with (
        ScriptedOpenAI(
            [Scripted(fault=Fault("status", status=500))], manners=Manners(no_key=True)
        ) as first,
        ScriptedOpenAI([Scripted(text="well")]) as second,
    ):
        settings = LlmSettings.model_validate(
            {
                "provider": "ollama",
                "base_url": first.base_url,
                "keys": {"openrouter": "k"},
                "base_urls": {"openrouter": second.base_url},
                "max_retries": 0,
                "fallbacks": ("openrouter:x",),
                "tool_calls": "text",
            }
        )
        model = build_model(settings)
        request = ModelRequest("m", "", (user_message("hello"),), tools=TOOLS)
        *_, reply = [piece async for piece in model.stream(request)]
        assert isinstance(reply, ModelResponse)
        assert "tools" not in first.requests[0]
        assert len(second.requests[0]["tools"]) == len(TOOLS)
        await model.close()


def test_the_key_of_a_fallback_is_checked_too() -> None:
    model = build_model(LlmSettings(fallbacks=("anthropic:claude-x",)))
    with pytest.raises(ModelKeyRejected, match="ANTHROPIC_API_KEY"):
        model.check_key()


@pytest.mark.parametrize(
    ("provider", "kind"), [("anthropic", ScriptedAnthropic), ("deepseek", ScriptedOpenAI)]
)
async def test_asking_a_model_imports_no_sdk(
    provider: str, kind: type[ScriptedAnthropic | ScriptedOpenAI]
) -> None:
    program = (
        "import asyncio, sys\n"
        "from internal.agent.domain.messages import user_message\n"
        "from internal.agent.ports.llm import ModelRequest\n"
        "from internal.settings.llm import LlmSettings\n"
        "from internal.llm.model_factory import build_model\n"
        "async def ask():\n"
        "    settings = LlmSettings(provider=sys.argv[1], api_key='k', base_url=sys.argv[2])\n"
        "    model = build_model(settings)\n"
        "    assert 'aiohttp' not in sys.modules\n"
        "    async for _ in model.stream(ModelRequest('m', '', (user_message('hi'),))): pass\n"
        "    await model.close()\n"
        "asyncio.run(ask())\n"
        "slow = {'anthropic', 'openai', 'httpx', 'httpx2'}\n"
        "print(sorted(slow & set(sys.modules)))\n"
    )
    async with kind([Scripted(text="ok")]) as server:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program, provider, server.base_url), stdout=subprocess.PIPE
        )
        output, _ = await process.communicate()
        assert server.count == 1
    assert (process.returncode, output) == (0, b"[]\n")


def test_an_unknown_fallback_is_rejected_with_the_known_providers() -> None:
    settings = LlmSettings.model_construct(provider="offline", fallbacks=("acme:x",))
    with pytest.raises(InvalidRequest, match=r"'acme'.*offline"):
        build_model(settings)

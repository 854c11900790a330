"""Behaviour shared by all providers of the registry. A new one adds the rules of its server."""

import ast
import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from internal.agent.domain.errors import (
    ModelError,
    ModelKeyRejected,
    ModelRejected,
    ModelWithoutCredit,
)
from internal.agent.domain.left_out import RequestLoss
from internal.agent.domain.messages import Message, Text, ToolCall, ToolResult, user_message
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.llm import (
    ModelRequest,
    ModelResponse,
    ModelStreamEvent,
    ReplyRevised,
    RetryScheduled,
    StreamRestarted,
    TextDelta,
)
from internal.llm.model_factory import build_model
from internal.model_providers.registry import PROVIDERS, Provider, find_providers_of_key
from internal.settings.llm import LlmSettings
from tests import ROOT
from tests.support.anthropic_server import ScriptedAnthropic
from tests.support.cloud_servers import (
    ScriptedBedrock,
    ScriptedFoundry,
    ScriptedVertex,
    cloud_environment,
)
from tests.support.images import an_image, in_base64
from tests.support.openai_server import Manners, ScriptedOpenAI
from tests.support.scripted_model import Call, Fault, ScriptedServer
from tests.support.scripted_model import Reply as Scripted

NAMES = [provider.name for provider in PROVIDERS]
TOOLS = tuple(
    ToolSpec(name, name, {"type": "object", "properties": {}}, "read")
    for name in ("plan", "update_plan", "list_dir")
)
ASK = "list the files here"


@dataclass(frozen=True)
class Stage:
    """A provider and the parts for a test of it. `tool_calls` as in the settings."""

    settings: LlmSettings
    faulty: Callable[[Fault], None]
    asked: Callable[[], int]


class Script:
    """Script of each fake server. A fault in `faults` applies to the next request."""

    def __init__(self, *, in_text: bool) -> None:
        self.faults: list[Fault] = []
        self._in_text = in_text

    def __call__(self, request: dict[str, Any]) -> Scripted:
        if self.faults:
            return Scripted(text="one two three", pieces=3, fault=self.faults.pop())
        sent = msgspec.json.encode(request["messages"]).decode()
        if ASK not in sent:
            return Scripted(text="hello to you", pieces=3)
        # a result is a block, a message with a role of its own, or text
        if any(mark in sent for mark in ('"tool_result"', '"role":"tool"', "<tool_result name")):
            return Scripted(text="These are they.", pieces=3)
        if self._in_text:
            block = '<tool_call>\n{"name": "list_dir", "arguments": {}}\n</tool_call>'
            return Scripted(text=f"Listing.\n{block}", pieces=9)
        return Scripted(text="Listing.", pieces=2, calls=[Call("list_dir")])


# Fields that a server of this provider requires; a server of another one refuses unknown fields.
MANNERS = {
    "openai": Manners(limit="max_completion_tokens", no_effort=True, no_temperature=True),
    "ark": Manners(limit="max_tokens"),
    "deepseek": Manners(limit="max_tokens", thoughts=True),
    "openrouter": Manners(),
    "ollama": Manners(limit="max_tokens", no_key=True),
    "qwen": Manners(limit="max_tokens"),
    "kimi": Manners(limit="max_completion_tokens", thoughts=True, no_temperature=True),
    "glm": Manners(limit="max_tokens", no_stream_options=True, no_tool_choice=True),
    "minimax": Manners(limit="max_completion_tokens", no_tool_choice=True),
    "gemini": Manners(limit="max_tokens"),
    "mistral": Manners(limit="max_tokens", no_stream_options=True),
    "xai": Manners(limit="max_completion_tokens"),
    "azure": Manners(limit="max_completion_tokens", key_header="api-key"),
}


CLOUDS = {"bedrock": ScriptedBedrock, "vertex": ScriptedVertex, "foundry": ScriptedFoundry}


@asynccontextmanager
async def staged(name: str, *, in_text: bool = False) -> AsyncGenerator[Stage]:
    tool_calls: Literal["native", "text"] = "text" if in_text else "native"
    script = Script(in_text=in_text)
    if name == "offline":
        yield Stage(LlmSettings(tool_calls=tool_calls), script.faults.append, lambda: 0)
        return
    fake: ScriptedServer
    if name == "anthropic":
        fake = ScriptedAnthropic(script)
    elif name in CLOUDS:
        fake = CLOUDS[name](script, api_key="k" if name == "foundry" else None)
    else:
        fake = ScriptedOpenAI(script, manners=MANNERS[name])
    async with fake as server:
        with pytest.MonkeyPatch.context() as patch:
            for variable, value in cloud_environment(server).items():
                patch.setenv(variable, value)
            settings = LlmSettings.model_validate(
                {
                    "provider": name,
                    "api_key": None if name in {"ollama", "bedrock", "vertex"} else "k",
                    "base_url": server.base_url,
                    "tool_calls": tool_calls,
                }
            )
            yield Stage(settings, script.faults.append, lambda: server.count)


STAGES = [*((name, False) for name in NAMES), ("openai", True), ("ollama", True)]
IDS = [f"{name}-text" if in_text else name for name, in_text in STAGES]


@pytest.fixture(params=STAGES, ids=IDS)
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    name, in_text = request.param
    async with staged(name, in_text=in_text) as ready:
        yield ready


@pytest.fixture
def settings(stage: Stage) -> LlmSettings:
    return stage.settings


def make_request(settings: LlmSettings, *messages: Message) -> ModelRequest:
    model = next(p.default_model for p in PROVIDERS if p.name == settings.provider)
    return ModelRequest(model, "be brief", messages, tools=TOOLS)


async def test_text_deltas_precede_one_final_response(settings: LlmSettings) -> None:
    model = build_model(settings)
    pieces: list[ModelStreamEvent] = [
        piece async for piece in model.stream(make_request(settings, user_message("hello")))
    ]
    *words, reply = pieces
    assert words
    assert all(isinstance(piece, TextDelta) for piece in words)
    assert isinstance(reply, ModelResponse)
    assert reply.stop == "end"
    text_so_far = "".join(piece.text for piece in words if isinstance(piece, TextDelta))
    assert text_so_far == "".join(part.text for part in reply.parts if isinstance(part, Text))
    assert reply.model
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0
    await model.close()


async def test_a_task_is_completed_with_tool_calls(settings: LlmSettings) -> None:
    model = build_model(settings)
    messages = [user_message(ASK)]
    for _ in range(8):
        *_, reply = [piece async for piece in model.stream(make_request(settings, *messages))]
        assert isinstance(reply, ModelResponse)
        messages.append(Message("assistant", reply.parts))
        calls = [part for part in reply.parts if isinstance(part, ToolCall)]
        assert bool(calls) is (reply.stop == "tools")
        if not calls:
            break
        results = tuple(ToolResult(call.call_id, "a.txt") for call in calls)
        messages.append(Message("user", results))
    assert messages[-1].text
    made = [call for message in messages for call in message.calls]
    assert "list_dir" in [call.name for call in made]
    assert len({call.call_id for call in made}) == len(made)
    asked = replace(make_request(settings, *messages, user_message("Sum up.")), tool_choice="none")
    *pieces, reply = [piece async for piece in model.stream(asked)]
    assert not any(isinstance(piece, RetryScheduled) for piece in pieces)
    assert isinstance(reply, ModelResponse)
    assert not Message("assistant", reply.parts).calls
    await model.close()


async def test_a_stream_can_be_closed_in_the_middle_of_a_reply(settings: LlmSettings) -> None:
    model = build_model(settings)
    request = make_request(settings, user_message("hello"))
    async with aclosing(model.stream(request)) as pieces:
        assert isinstance(await anext(pieces), TextDelta)
    *_, reply = [piece async for piece in model.stream(request)]
    assert isinstance(reply, ModelResponse)
    await model.close()


@pytest.mark.first_rows(4)
async def test_one_client_serves_concurrent_calls(settings: LlmSettings) -> None:
    model = build_model(settings)
    model.check_key()
    model.preload()
    request = make_request(settings, user_message("hello"))

    async def hear() -> ModelResponse:
        *_, reply = [piece async for piece in model.stream(request)]
        assert isinstance(reply, ModelResponse)
        return reply

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(hear()) for _ in range(20)]
    assert len({task.result().parts for task in tasks}) == 1
    await model.close()


FAULTS = [
    Fault("status", status=503),
    Fault("status", status=429, retry_after=0),
    Fault("drop"),
    Fault("garbage"),
    Fault("error_in_stream"),
    Fault("error_in_stream", after_pieces=2),
    Fault("cut_after_bytes", bytes=150),
    Fault("cut_after_bytes", bytes=150, clean=True),
]


class RecordedWaits:
    """Ends each wait at once and remembers how long it should have been."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.kind}-{f.status}-{f.after_pieces}")
async def test_temporary_failures_are_retried(stage: Stage, fault: Fault) -> None:
    stage.faulty(fault)
    waits = RecordedWaits()
    model = build_model(stage.settings, waits)
    announced = []
    text_so_far = ""
    async for piece in model.stream(make_request(stage.settings, user_message("hello"))):
        match piece:
            case TextDelta(text):
                text_so_far += text
            case ReplyRevised(_, answer):
                text_so_far = answer
            case StreamRestarted():
                text_so_far = ""
            case RetryScheduled(_, seconds, attempt):
                assert seconds < 1
                assert attempt == 2
                announced.append(seconds)
            case RequestLoss():
                raise AssertionError(piece)
            case ModelResponse():
                assert text_so_far == "".join(
                    part.text for part in piece.parts if isinstance(part, Text)
                )
                assert piece.stop == "end"
    assert text_so_far
    assert waits.seconds == announced
    assert stage.asked() in {0, 2, 3}  # offline nothing fails; a lesson costs a request
    await model.close()


PERMANENT = {401: ModelKeyRejected, 402: ModelWithoutCredit, 404: ModelRejected}


@pytest.mark.parametrize("status", PERMANENT)
async def test_permanent_failures_are_raised_without_retry(stage: Stage, status: int) -> None:
    if stage.settings.provider == "offline":
        return
    stage.faulty(Fault("status", status=status, message="not here"))
    model = build_model(stage.settings)
    request = replace(make_request(stage.settings, user_message("hello")), tools=())
    with pytest.raises(ModelError, match="not here") as error:
        await anext(model.stream(request))
    assert type(error.value) is PERMANENT[status]
    assert stage.asked() == 1
    await model.close()


async def test_temperature_and_images_are_accepted_by_every_provider(stage: Stage) -> None:
    model = build_model(stage.settings)
    message = user_message("hello", [an_image(b"png")])
    images = in_base64([b"png"])
    request = replace(make_request(stage.settings, message), temperature=0.3, images=images)
    *_, reply = [piece async for piece in model.stream(request)]
    assert isinstance(reply, ModelResponse)
    assert reply.parts
    await model.close()


@pytest.mark.parametrize(
    "provider", [p for p in PROVIDERS if p.needs_key(None)], ids=lambda p: p.name
)
async def test_a_missing_key_is_named_in_one_sentence(provider: Provider) -> None:
    settings = LlmSettings.model_validate({"provider": provider.name})
    variable = str(provider.key_variable)
    model = build_model(settings)
    with pytest.raises(ModelKeyRejected, match=variable) as error:
        model.check_key()
    assert len(str(error.value).splitlines()) == 1
    with pytest.raises(ModelKeyRejected, match=variable):
        await anext(model.stream(make_request(settings, user_message("hello"))))
    await model.close()


@pytest.mark.parametrize("given", [{"provider": "acme"}, {"fallbacks": ("claude-x",)}])
def test_settings_with_an_unknown_provider_are_rejected(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LlmSettings.model_validate(given)


def test_settings_do_not_show_keys() -> None:
    settings = LlmSettings.model_validate({"provider": "anthropic", "api_key": "canary"})
    assert "canary" not in f"{settings} {settings!r}"
    assert settings.credentials("anthropic") == ("canary", None)


ACME = """
ACME = OpenAICompatible(
    name="acme",
    title="Acme",
    description="a provider that only this test adds",
    base_url="BASE_URL",
    key_variable="ACME_API_KEY",
    default_model="acme-1",
    models=(ModelInfo("acme-", 64_000, 4_000, prices(1.0, 2.0, 0.5)),),
)
"""
USE_ACME = """
import asyncio, json
from internal.agent.domain.messages import user_message
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelRequest
from internal.config.loader import load
from internal.config.reference import provider_table
from internal.llm.model_catalog import make_model_book
from internal.llm.model_factory import build_model

async def main():
    settings = load().settings.llm
    book = make_model_book(settings)
    model = build_model(settings)
    request = ModelRequest(settings.model, "", (user_message("hello"),))
    *_, reply = [piece async for piece in model.stream(request)]
    await model.close()
    print(json.dumps({
        "settings": [settings.provider, settings.model],
        "limit": book.limits("acme-1").max_output_tokens,
        "cost": book.prices.cost("acme-1", Usage(input_tokens=1_000_000)),
        "reply": reply.parts[0].text,
        "documented": "`ACME_API_KEY` | `acme-1`" in provider_table(),
    }))

asyncio.run(main())
"""


async def test_a_provider_is_one_entry_and_its_registration(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    """A copy of the package with one more entry validates, builds, prices and documents it."""
    shutil.copytree(ROOT / "internal", tmp_path / "internal")
    entries = tmp_path / "internal" / "model_providers" / "others.py"
    registry = tmp_path / "internal" / "model_providers" / "registry.py"
    async with ScriptedOpenAI([Scripted(text="well")], manners=Manners(limit="max_tokens")) as fake:
        entries.write_text(entries.read_text() + ACME.replace("BASE_URL", fake.base_url))
        text = registry.read_text().replace("    OFFLINE,\n)", "    OFFLINE,\n    ACME,\n)")
        text = text.replace("others import (\n", "others import (\n    ACME,\n")
        registry.write_text(text)
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", USE_ACME),
            stdout=asyncio.subprocess.PIPE,
            cwd=tmp_path,
            env={**environ, "PYTHONPATH": str(tmp_path), "ACME_API_KEY": "k"},
        )
        output, _ = await program.communicate()
    assert json.loads(output) == {
        "settings": ["acme", "acme-1"],
        "limit": 4_000,
        "cost": 1.0,
        "reply": "well",
        "documented": True,
    }


def test_reading_the_registry_imports_the_standard_library_only() -> None:
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import internal.model_providers.registry\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new - sys.stdlib_module_names - {'internal'}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ast.literal_eval(done.stdout) == []


def test_every_default_model_is_listed_and_no_name_twice() -> None:
    names = [info.name for provider in PROVIDERS for info in provider.models]
    assert len(names) == len(set(names))
    for provider in PROVIDERS:
        mine = [info.name for info in provider.models]
        is_listed = any(provider.default_model.startswith(name) for name in mine)
        assert is_listed or provider.any_model, provider.name


@pytest.mark.parametrize(
    ("key", "providers"),
    [
        ("sk-ant-api03-" + "a" * 90, "anthropic"),
        ("sk-proj-" + "a_B-9" * 10, "openai"),
        ("sk-" + "aB3" * 16, "openai kimi"),
        ("sk-" + "aB3cD" * 4 + "T3BlbkFJ" + "aB3cD" * 4, "openai"),
        ("sk-" + "0a" * 16, "deepseek qwen"),
        ("sk-relay-" + "aB3" * 16, ""),
        ("sk-or-v1-" + "a1" * 32, "openrouter"),
        ("0123abcd-01ab-01ab-01ab-0123456789ab", "ark"),
        ("AIza" + "aB-3_" * 7, "gemini"),
        ("xai-" + "aB3" * 20, "xai"),
        ("0a" * 16 + "." + "aB3d" * 4, "glm"),
        ("ABSK" + "aB3+" * 20 + "==", "bedrock"),
        ("hello", ""),
        ("sk-", ""),
        ("sk-proj-" + "ä" * 20, ""),
        ("", ""),
    ],
)
def test_the_form_of_a_key_names_the_providers(key: str, providers: str) -> None:
    assert [each.name for each in find_providers_of_key(key)] == providers.split()

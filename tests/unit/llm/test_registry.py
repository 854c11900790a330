"""What every provider of the roster must do. A new one adds what its server insists on."""

import ast
import asyncio
import base64
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import pytest
from msgspec.structs import replace

from internal.agent.domain.errors import InvalidRequest, ModelError, ModelKeyRejected, ModelRejected
from internal.agent.domain.messages import Image, Message, Text, ToolCall, ToolResult, user_message
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.llm import (
    ModelRequest,
    ModelResponse,
    ModelStreamEvent,
    StreamRestarted,
    TextDelta,
)
from internal.config.vendors import VENDORS
from internal.llm.registry import (
    PROVIDERS,
    ModelSettings,
    ProviderCredentials,
    build_model,
    provider_named,
)
from internal.llm.secrets import Secret
from tests import ROOT
from tests.support.anthropic_server import ScriptedAnthropic
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
    """A provider and all that a test of it needs. `tool_calls` as in the settings."""

    settings: ModelSettings
    faulty: Callable[[Fault], None]
    asked: Callable[[], int]


class Script:
    """What each fake server does; a fault that is set strikes the next request."""

    def __init__(self, *, in_text: bool) -> None:
        self.faults: list[Fault] = []
        self._in_text = in_text

    def __call__(self, request: dict[str, Any]) -> Scripted:
        if self.faults:
            return Scripted(text="one two three", pieces=3, fault=self.faults.pop())
        told = msgspec.json.encode(request["messages"]).decode()
        if ASK not in told:
            return Scripted(text="hello to you", pieces=3)
        # a result is there as a block, a role or, in words, as what we write for one
        if any(mark in told for mark in ('"tool_result"', '"role":"tool"', "<tool_result name")):
            return Scripted(text="These are they.", pieces=3)
        if self._in_text:
            block = '<tool_call>\n{"name": "list_dir", "arguments": {}}\n</tool_call>'
            return Scripted(text=f"Listing.\n{block}", pieces=9)
        return Scripted(text="Listing.", pieces=2, calls=[Call("list_dir")])


# What a server of this provider insists on; that of another refuses what it does not know.
MANNERS = {
    "openai": Manners(limit="max_completion_tokens", no_effort=True, no_temperature=True),
    "ark": Manners(limit="max_tokens"),
    "deepseek": Manners(limit="max_tokens", thoughts=True),
    "openrouter": Manners(),
    "ollama": Manners(limit="max_tokens", no_key=True),
}


@asynccontextmanager
async def staged(name: str, *, in_text: bool = False) -> AsyncGenerator[Stage]:
    tool_calls: Literal["native", "text"] = "text" if in_text else "native"
    script = Script(in_text=in_text)
    if name == "offline":
        yield Stage(ModelSettings(name, tool_calls=tool_calls), script.faults.append, lambda: 0)
        return
    fake: ScriptedServer
    if name == "anthropic":
        fake = ScriptedAnthropic(script)
    else:
        fake = ScriptedOpenAI(script, manners=MANNERS[name])
    async with fake as server:
        key = "" if name == "ollama" else "k"
        access = {name: ProviderCredentials(Secret(key), server.base_url)}
        settings = ModelSettings(name, access=access, tool_calls=tool_calls)
        yield Stage(settings, script.faults.append, lambda: server.count)


STAGES = [*((name, False) for name in NAMES), ("openai", True), ("ollama", True)]
IDS = [f"{name}-text" if in_text else name for name, in_text in STAGES]


@pytest.fixture(params=STAGES, ids=IDS)
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    name, in_text = request.param
    async with staged(name, in_text=in_text) as ready:
        yield ready


@pytest.fixture
def settings(stage: Stage) -> ModelSettings:
    return stage.settings


def asking(settings: ModelSettings, *messages: Message) -> ModelRequest:
    model = next(p.default_model for p in PROVIDERS if p.name == settings.provider)
    return ModelRequest(model, "be brief", messages, tools=TOOLS)


async def test_words_come_first_and_one_reply_last(settings: ModelSettings) -> None:
    model = build_model(settings)
    pieces: list[ModelStreamEvent] = [
        piece async for piece in model.stream(asking(settings, user_message("hello")))
    ]
    *words, reply = pieces
    assert words
    assert all(isinstance(piece, TextDelta) for piece in words)
    assert isinstance(reply, ModelResponse)
    assert reply.stop == "end"
    said = "".join(piece.text for piece in words if isinstance(piece, TextDelta))
    assert said == "".join(part.text for part in reply.parts if isinstance(part, Text))
    assert reply.model
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0
    await model.close()


async def test_a_job_goes_through_calls_to_an_answer(settings: ModelSettings) -> None:
    model = build_model(settings)
    messages = [user_message(ASK)]
    for _ in range(8):
        *_, reply = [piece async for piece in model.stream(asking(settings, *messages))]
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
    await model.close()


async def test_it_can_be_left_in_mid_reply(settings: ModelSettings) -> None:
    model = build_model(settings)
    request = asking(settings, user_message("hello"))
    async with aclosing(model.stream(request)) as pieces:
        assert isinstance(await anext(pieces), TextDelta)
    *_, reply = [piece async for piece in model.stream(request)]
    assert isinstance(reply, ModelResponse)
    await model.close()


async def test_many_runs_may_use_it_at_once(settings: ModelSettings) -> None:
    model = build_model(settings)
    model.check_key()
    model.warm()
    request = asking(settings, user_message("hello"))

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


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.kind}-{f.status}-{f.after_pieces}")
async def test_what_passes_is_tried_again(stage: Stage, fault: Fault) -> None:
    stage.faulty(fault)
    model = build_model(stage.settings)
    said = ""
    async for piece in model.stream(asking(stage.settings, user_message("hello"))):
        match piece:
            case TextDelta(text):
                said += text
            case StreamRestarted():
                said = ""
            case ModelResponse():
                assert said == "".join(part.text for part in piece.parts if isinstance(part, Text))
                assert piece.stop == "end"
    assert said
    assert stage.asked() in {0, 2, 3}  # offline nothing fails; a lesson costs a request
    await model.close()


@pytest.mark.parametrize("status", [401, 402, 404])
async def test_what_does_not_pass_is_told_at_once(stage: Stage, status: int) -> None:
    if stage.settings.provider == "offline":
        return
    stage.faulty(Fault("status", status=status, message="not here"))
    model = build_model(stage.settings)
    request = replace(asking(stage.settings, user_message("hello")), tools=())
    with pytest.raises(ModelError, match="not here") as error:
        await anext(model.stream(request))
    assert type(error.value) is (ModelKeyRejected if status == 401 else ModelRejected)
    assert stage.asked() == 1
    await model.close()


async def test_temperature_and_pictures_are_taken_or_left_out(stage: Stage) -> None:
    model = build_model(stage.settings)
    picture = Image("image/png", base64.b64encode(b"png").decode())
    told = user_message("hello", [picture])
    request = replace(asking(stage.settings, told), temperature=0.3)
    *_, reply = [piece async for piece in model.stream(request)]
    assert isinstance(reply, ModelResponse)
    assert reply.parts
    await model.close()


@pytest.mark.parametrize("provider", [p for p in PROVIDERS if p.key_name], ids=lambda p: p.name)
async def test_a_missing_key_is_one_sentence_that_names_it(provider: object) -> None:
    name, key_name = str(vars(provider)["name"]), str(vars(provider)["key_name"])
    model = build_model(ModelSettings(name))
    with pytest.raises(ModelKeyRejected, match=key_name) as error:
        model.check_key()
    assert len(str(error.value).splitlines()) == 1
    with pytest.raises(ModelKeyRejected, match=key_name):
        await anext(model.stream(asking(ModelSettings(name), user_message("hello"))))
    await model.close()


async def test_a_fallback_of_another_provider_has_its_own_key_and_address() -> None:
    busy = Fault("status", status=529)
    async with (
        ScriptedAnthropic([Scripted(fault=busy)] * 3, api_key="claude's") as claude,
        ScriptedOpenAI([Scripted(fault=busy)] * 3, api_key="deep's") as deep,
        ScriptedOpenAI([Scripted(text="at last")], manners=Manners(no_key=True)) as home,
    ):
        access = {
            "anthropic": ProviderCredentials(Secret("claude's"), claude.base_url),
            "deepseek": ProviderCredentials(Secret("deep's"), deep.base_url),
            "ollama": ProviderCredentials(base_url=home.base_url),
        }
        fallbacks = ("deepseek:deepseek-flash", "ollama:qwen3:8b")
        model = build_model(ModelSettings("anthropic", access, max_retries=0, fallbacks=fallbacks))
        model.check_key()
        request = ModelRequest("claude-x", "", (user_message("hello"),), tools=TOOLS)
        *_, reply = [piece async for piece in model.stream(request)]
        assert isinstance(reply, ModelResponse)
        assert (reply.parts, reply.model) == ((Text("at last"),), "qwen3:8b")
        models = [server.requests[0]["model"] for server in (claude, deep, home)]
        assert models == ["claude-x", "deepseek-flash", "qwen3:8b"]
        await model.close()


async def test_only_the_named_provider_is_told_of_tools_in_words() -> None:
    async with (
        ScriptedOpenAI(
            [Scripted(fault=Fault("status", status=500))], manners=Manners(no_key=True)
        ) as first,
        ScriptedOpenAI([Scripted(text="well")]) as second,
    ):
        access = {
            "ollama": ProviderCredentials(base_url=first.base_url),
            "openrouter": ProviderCredentials(Secret("k"), second.base_url),
        }
        settings_ = ModelSettings(
            "ollama", access, max_retries=0, fallbacks=("openrouter:x",), tool_calls="text"
        )
        model = build_model(settings_)
        request = ModelRequest("m", "", (user_message("hello"),), tools=TOOLS)
        *_, reply = [piece async for piece in model.stream(request)]
        assert isinstance(reply, ModelResponse)
        assert "tools" not in first.requests[0]
        assert len(second.requests[0]["tools"]) == len(TOOLS)
        await model.close()


def test_the_roster_is_that_of_the_settings() -> None:
    known = {p.name: (p.key_name, p.default_model) for p in PROVIDERS if p.name != "offline"}
    assert known == {name: (v.key_variable, v.model) for name, v in VENDORS.items()}
    assert provider_named("offline").key_name is None


def test_the_key_of_a_fallback_is_checked_too() -> None:
    model = build_model(ModelSettings("offline", fallbacks=("anthropic:claude-x",)))
    with pytest.raises(ModelKeyRejected, match="ANTHROPIC_API_KEY"):
        model.check_key()


@pytest.mark.parametrize(
    "settings_", [ModelSettings("acme"), ModelSettings("offline", fallbacks=("claude-x",))]
)
def test_settings_that_name_nothing_are_refused(settings_: ModelSettings) -> None:
    with pytest.raises(InvalidRequest):
        build_model(settings_)


def test_settings_do_not_show_keys() -> None:
    settings_ = ModelSettings(
        "anthropic", access={"anthropic": ProviderCredentials(Secret("canary"))}
    )
    assert "canary" not in repr(settings_)
    assert "canary" not in f"{settings_} {settings_.access['anthropic'].key}"


def test_building_a_model_imports_no_sdk() -> None:
    program = (
        "import sys\n"
        "from internal.llm.registry import *\n"
        "for provider in PROVIDERS:\n"
        "    build_model(ModelSettings(provider.name))\n"
        "slow = {'anthropic', 'openai', 'aiohttp', 'httpx2', 'pydantic'}\n"
        "print(sorted(slow & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ast.literal_eval(done.stdout) == []


def test_the_documentation_names_every_provider() -> None:
    page = (ROOT / "docs/models.md").read_text(encoding="utf-8")
    for provider in PROVIDERS:
        assert f"`{provider.name}`" in page
        assert provider.key_name is None or f"`{provider.key_name}`" in page
        assert f"`{provider.default_model}`" in page

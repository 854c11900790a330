"""Claude on the three clouds, at local servers that check signatures, tokens and keys."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import (
    ModelError,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnreachable,
)
from internal.agent.domain.messages import Message, Text, Thinking, ToolCall, user_message
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.llm import ModelRequest, ModelResponse, TextDelta
from internal.llm.model_factory import build_model
from internal.llm.retry import RetryingModel
from internal.settings.llm import LlmSettings
from larkspur.version import VERSION
from tests.support.cloud_servers import (
    PROJECT,
    REGION,
    ScriptedBedrock,
    ScriptedCloud,
    ScriptedFoundry,
    ScriptedVertex,
    bedrock_environment,
    foundry_environment,
    vertex_environment,
)
from tests.support.scripted_model import Call, Fault, Reply

TOOL = ToolSpec("list_dir", "Lists a folder.", {"type": "object", "properties": {}}, "read")
REPLY = Reply(text="Listing now.", pieces=3, thinking="A folder.", calls=[Call("list_dir")])
CLOUDS = ("bedrock", "vertex", "foundry")
BEDROCK_MODEL = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"


@pytest.fixture(autouse=True)
def _no_credentials_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        *("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"),
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
        *("CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_APPLICATION_CREDENTIALS"),
        *("ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_API_KEY", "GOOGLE_CLOUD_PROJECT"),
    ):
        monkeypatch.delenv(name, raising=False)


@asynccontextmanager
async def served(
    cloud: str,
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    replies: list[Reply],
    **settings: Any,
) -> AsyncGenerator[tuple[ScriptedCloud, RetryingModel]]:
    """Start the server of a cloud with its credentials in the environment."""
    server: ScriptedCloud
    if cloud == "bedrock":
        server = ScriptedBedrock(replies)
        environment = bedrock_environment()
    elif cloud == "vertex":
        server = ScriptedVertex(replies)
        environment = {}
    else:
        server = ScriptedFoundry(replies, api_key="key-of-foundry")
        environment = {}
        settings.setdefault("api_key", "key-of-foundry")
    async with server:
        if isinstance(server, ScriptedVertex):
            environment = vertex_environment(server, folder)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        chosen = {"provider": cloud, "base_url": server.base_url, "max_retries": 0, **settings}
        model = build_model(LlmSettings.model_validate(chosen))
        model.check_key()
        try:
            yield server, model
        finally:
            await model.close()


def request(model: str = "claude-sonnet-5-5", *messages: Message) -> ModelRequest:
    return ModelRequest(
        model, "be brief", messages or (user_message("list the files"),), tools=(TOOL,)
    )


async def ask(model: RetryingModel, asked: ModelRequest) -> tuple[str, ModelResponse]:
    *pieces, reply = [piece async for piece in model.stream(asked)]
    assert isinstance(reply, ModelResponse)
    shown = "".join(p.text for p in pieces if isinstance(p, TextDelta) and not p.reasoning)
    return shown, reply


@pytest.mark.parametrize("cloud", CLOUDS)
async def test_text_thinking_calls_and_usage_come_from_every_cloud(
    cloud: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with served(cloud, monkeypatch, tmp_path, [REPLY]) as (server, model):
        shown, reply = await ask(model, request())
        assert shown == "Listing now."
        assert [type(part) for part in reply.parts] == [Thinking, Text, ToolCall]
        assert reply.stop == "tools"
        assert reply.usage.input_tokens > 0
        assert reply.usage.output_tokens > 0
        (sent,) = server.requests
        assert (sent["model"], sent["max_tokens"]) == ("claude-sonnet-5-5", 8_192)
        assert [tool["name"] for tool in sent["tools"]] == ["list_dir"]


async def test_bedrock_gets_a_signed_request_for_the_model_in_its_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with served("bedrock", monkeypatch, tmp_path, [REPLY]) as (server, model):
        await ask(model, request(BEDROCK_MODEL))
        ((_, path, headers),) = server.seen_requests
        assert path == f"/model/{BEDROCK_MODEL}/invoke-with-response-stream"
        assert f"/{REGION}/bedrock/aws4_request" in headers["authorization"]
        assert b'"anthropic_version":"bedrock-2023-05-31"' in server.bodies[0]


async def test_a_wrong_signature_is_rejected_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # another region: the SDK keeps the credentials of one for as long as the process runs
    wrong = {"AWS_REGION": "eu-west-1", "AWS_SECRET_ACCESS_KEY": "another"}
    for name, value in {**bedrock_environment(), **wrong}.items():
        monkeypatch.setenv(name, value)
    async with ScriptedBedrock([REPLY]) as server:
        settings = LlmSettings.model_validate({"provider": "bedrock", "base_url": server.base_url})
        model = build_model(settings)
        with pytest.raises(ModelKeyRejected, match=r"Amazon Bedrock.*signature") as error:
            await ask(model, request())
        assert len(str(error.value).splitlines()) == 1
        assert server.count == 0
        await model.close()


async def test_a_key_of_bedrock_takes_the_place_of_a_signature(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_REGION", REGION)
    async with ScriptedBedrock([REPLY], api_key="ABSK-key") as server:
        settings = LlmSettings.model_validate(
            {"provider": "bedrock", "base_url": server.base_url, "api_key": "ABSK-key"}
        )
        model = build_model(settings)
        shown, _ = await ask(model, request())
        assert shown == "Listing now."
        await model.close()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("throttlingException", ModelOverloaded),
        ("serviceUnavailableException", ModelOverloaded),
        ("modelStreamErrorException", ModelOverloaded),
        ("validationException", ModelRejected),
    ],
)
@pytest.mark.parametrize("after", [0, 2])
async def test_an_exception_inside_of_a_stream_of_bedrock_is_an_error(
    name: str,
    error: type[ModelError],
    after: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    fault = Fault("error_in_stream", error=name, message="not now, please", after_pieces=after)
    replies = [Reply(text="one two three", pieces=3, fault=fault)] * 2
    async with served("bedrock", monkeypatch, tmp_path, replies) as (_, model):
        with pytest.raises(error, match="not now, please"):
            await ask(model, request())


@pytest.mark.slow
async def test_a_damaged_message_of_bedrock_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    noise = Fault("garbage", body="x" * 64, content_type="application/vnd.amazon.eventstream")
    async with served("bedrock", monkeypatch, tmp_path, [Reply(fault=noise)]) as (_, model):
        with pytest.raises(ModelUnreachable, match="damaged event stream"):
            await ask(model, request())


async def test_vertex_gets_the_token_of_a_service_account_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with served("vertex", monkeypatch, tmp_path, [REPLY, REPLY]) as (server, model):
        await ask(model, request("claude-sonnet-4-5@20250929"))
        await ask(model, request())
        assert isinstance(server, ScriptedVertex)
        assert server.tokens_given == 1
        _, path, _ = server.seen_requests[0]
        assert path.startswith(f"/v1/projects/{PROJECT}/locations/global/")
        versions = [b'"vertex-2023-10-16"' in body for body in server.bodies]
        assert versions == [True, False]  # only models with a date take no other version


async def test_foundry_takes_the_credentials_of_azure_where_no_key_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ScriptedFoundry([REPLY]) as server:
        for name, value in foundry_environment(server).items():
            monkeypatch.setenv(name, value)
        settings = LlmSettings.model_validate({"provider": "foundry", "base_url": server.base_url})
        model = build_model(settings)
        shown, _ = await ask(model, request())
        assert shown == "Listing now."
        await model.close()


@pytest.mark.parametrize("cloud", CLOUDS)
async def test_earlier_thinking_that_is_refused_is_left_out(
    cloud: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    history = (
        user_message("hello"),
        Message("assistant", (Thinking("of another", signature="stale"), Text("well"))),
        user_message("go on"),
    )
    async with served(cloud, monkeypatch, tmp_path, [REPLY]) as (server, model):
        shown, _ = await ask(model, request("claude-sonnet-5-5", *history))
        assert shown == "Listing now."
        assert "stale" not in str(server.requests)


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.first_rows(1)
async def test_a_silent_cloud_is_a_failure_and_a_reply_can_be_closed(
    cloud: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    replies = [Reply(text="one two", pieces=2, after_pieces=1, hang=True), Reply(hang=True)]
    limit = {"request_timeout_seconds": 0.3}
    async with served(cloud, monkeypatch, tmp_path, replies, **limit) as (server, model):
        stream = model.stream(request())
        assert isinstance(await anext(stream), TextDelta)
        await stream.aclose()
        await server.until_open(0)
        with pytest.raises(ModelUnreachable, match=r"sent nothing for 0\.3 s"):
            await ask(model, request())


@pytest.mark.parametrize(
    ("cloud", "variables", "sentence"),
    [
        ("bedrock", {}, "Amazon Bedrock needs a region: set AWS_REGION."),
        (
            "bedrock",
            {"AWS_REGION": "us-east-2"},
            (
                "Amazon Bedrock needs credentials: set AWS_ACCESS_KEY_ID and"
                " AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or a key of Bedrock in"
                " AWS_BEARER_TOKEN_BEDROCK."
            ),
        ),
        ("vertex", {}, "Google Vertex needs a region: set CLOUD_ML_REGION, such as global."),
        (
            "vertex",
            {"CLOUD_ML_REGION": "global"},
            "Google Vertex needs a project: set ANTHROPIC_VERTEX_PROJECT_ID.",
        ),
        (
            "vertex",
            {"CLOUD_ML_REGION": "global", "ANTHROPIC_VERTEX_PROJECT_ID": "p"},
            (
                "Google Vertex needs credentials: run gcloud auth application-default login, or set"
                " GOOGLE_APPLICATION_CREDENTIALS."
            ),
        ),
        (
            "foundry",
            {},
            "Microsoft Foundry needs a resource: set ANTHROPIC_FOUNDRY_RESOURCE or llm.base_url.",
        ),
    ],
)
async def test_what_is_missing_is_named_in_one_sentence(
    cloud: str,
    variables: dict[str, str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    nothing = {
        "HOME": str(tmp_path),
        "CLOUDSDK_CONFIG": str(tmp_path),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
        "NO_GCE_CHECK": "true",
    }
    for name, value in {**nothing, **variables}.items():
        monkeypatch.setenv(name, value)
    model = build_model(LlmSettings(provider=cloud, max_retries=0))
    model.check_key()
    with pytest.raises(ModelKeyRejected) as error:
        await ask(model, request())
    assert str(error.value) == sentence
    await model.close()


ASK = """
import asyncio, sys
from internal.agent.domain.messages import user_message
from internal.agent.ports.llm import ModelRequest
from internal.settings.llm import LlmSettings
from internal.llm.model_factory import build_model
async def ask():
    model = build_model(LlmSettings(provider=sys.argv[1], max_retries=0))
    try:
        model.check_key()
        async for _ in model.stream(ModelRequest('claude-x', '', (user_message('hi'),))): pass
    except Exception as error:
        print(type(error).__name__, error)
    await model.close()
asyncio.run(ask())
"""


WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in {'boto3', 'google', 'azure'}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
"""


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.first_rows(1)
async def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    cloud: str, environ: dict[str, str]
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WITHOUT + ASK, cloud), stdout=subprocess.PIPE, env=environ
    )
    output, _ = await process.communicate()
    sentence = output.decode().strip()
    assert sentence.startswith("ModelKeyRejected")
    assert sentence.endswith(f"-py3-none-any.whl[{cloud}]'")
    assert f"pip install './larkspur_gateway-{VERSION}" in sentence


@pytest.mark.slow
async def test_foundry_with_a_key_needs_no_extra(environ: dict[str, str]) -> None:
    async with ScriptedFoundry([REPLY], api_key="k") as server:
        program = ASK.replace("max_retries=0", "max_retries=0, api_key='k', base_url=sys.argv[2]")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", WITHOUT + program, "foundry", server.base_url),
            stdout=subprocess.PIPE,
            env=environ,
        )
        output, _ = await process.communicate()
        assert (output, server.count) == (b"", 1)

"""`larkspur -p` with Claude on a cloud, as a process with the variables of the cloud's tools."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cloud_servers import (
    ScriptedBedrock,
    ScriptedVertex,
    bedrock_environment,
    vertex_environment,
)
from tests.support.scripted_model import Reply

LARKSPUR = Path(sys.executable).with_name("larkspur")


async def ask(environ: dict[str, str], folder: Path) -> tuple[int | None, str, str]:
    work = folder / "work"
    work.mkdir()
    process = await asyncio.create_subprocess_exec(
        *(str(LARKSPUR), "-p", "hello"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        cwd=work,
    )
    output, errors = await process.communicate()
    return process.returncode, output.decode(), errors.decode()


async def test_bedrock_answers_a_signed_request(environ: dict[str, str], tmp_path: Path) -> None:
    async with ScriptedBedrock(lambda _: Reply(text="Hello from the cloud.")) as server:
        chosen = {
            "LARKSPUR_LLM__PROVIDER": "bedrock",
            "ANTHROPIC_BEDROCK_BASE_URL": server.base_url,
        }
        done = await ask({**environ, **bedrock_environment(), **chosen}, tmp_path)
    assert done == (0, "Hello from the cloud.\n", "")


@pytest.mark.slow
async def test_vertex_answers_with_the_token_of_an_account(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with ScriptedVertex(lambda _: Reply(text="Hello from the cloud.")) as server:
        chosen = {"LARKSPUR_LLM__PROVIDER": "vertex", "ANTHROPIC_VERTEX_BASE_URL": server.base_url}
        variables = vertex_environment(server, tmp_path)
        done = await ask({**environ, **variables, **chosen}, tmp_path)
    assert done == (0, "Hello from the cloud.\n", "")


@pytest.mark.parametrize(
    ("provider", "sentence"),
    [
        ("bedrock", "Amazon Bedrock needs a region: set AWS_REGION."),
        ("vertex", "Google Vertex needs a region: set CLOUD_ML_REGION, such as global."),
        ("azure", "No API key for Azure OpenAI: set AZURE_OPENAI_API_KEY or llm.api_key"),
    ],
)
@pytest.mark.first_rows(1)
async def test_what_a_provider_lacks_is_one_sentence(
    provider: str, sentence: str, environ: dict[str, str], tmp_path: Path
) -> None:
    code, output, errors = await ask({**environ, "LARKSPUR_LLM__PROVIDER": provider}, tmp_path)
    assert (code, output) == (3, "")
    assert sentence in errors

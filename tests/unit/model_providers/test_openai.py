"""OpenAI's models on Azure: the address of a resource and the header of the key."""

import pytest

from internal.agent.domain.errors import ModelKeyRejected
from internal.agent.domain.messages import user_message
from internal.agent.ports.llm import ModelRequest, ModelResponse
from internal.config.loader import load
from internal.llm.model_factory import build_model
from internal.settings.llm import LlmSettings
from tests.support.openai_server import Manners, ScriptedOpenAI
from tests.support.scripted_model import Reply

AZURE = Manners(limit="max_completion_tokens", key_header="api-key")


class AzureServer(ScriptedOpenAI):
    path = "/openai/v1/chat/completions"


@pytest.mark.parametrize("ending", ["", "/", "/openai/v1", "/openai/v1/"])
async def test_the_address_of_a_resource_is_completed(ending: str) -> None:
    async with AzureServer([Reply(text="well")], manners=AZURE, api_key="k") as server:
        address = server.base_url.removesuffix("/v1") + ending
        settings = {"provider": "azure", "api_key": "k", "base_url": address}
        model = build_model(LlmSettings.model_validate(settings))
        request = ModelRequest("my-deployment", "", (user_message("hello"),))
        *_, reply = [piece async for piece in model.stream(request)]
        assert isinstance(reply, ModelResponse)
        assert "authorization" not in server.headers[0]
        await model.close()


def test_without_an_address_the_sentence_names_its_variable() -> None:
    settings = LlmSettings.model_validate({"provider": "azure", "api_key": "k"})
    with pytest.raises(ModelKeyRejected, match=r"address.*AZURE_OPENAI_ENDPOINT"):
        build_model(settings).check_key()


def test_a_key_is_needed_at_every_address() -> None:
    given = {"provider": "azure", "base_url": "https://x.openai.azure.com"}
    with pytest.raises(ModelKeyRejected, match="AZURE_OPENAI_API_KEY"):
        build_model(LlmSettings.model_validate(given)).check_key()


def test_a_key_without_an_address_does_not_choose_the_provider(environ: dict[str, str]) -> None:
    key = {"AZURE_OPENAI_API_KEY": "k"}
    assert load(environ={**environ, **key}).settings.llm.provider == "offline"
    address = {"AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com"}
    loaded = load(environ={**environ, **key, **address})
    assert loaded.settings.llm.provider == "azure"
    assert loaded.settings.llm.base_url == address["AZURE_OPENAI_ENDPOINT"]

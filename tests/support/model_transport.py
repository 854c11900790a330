"""Connections to a model's server."""

from internal.agent.domain.errors import ModelError
from internal.llm.errors import ProviderInfo
from internal.llm.transport import ApiKey, ProviderErrorResponse, ProviderHttpClient

PEER = ProviderInfo("Acme", "ACME_API_KEY")


def client_with(key: str, address: str = "http://127.0.0.1:9") -> ProviderHttpClient:
    return ProviderHttpClient(PEER, address, ApiKey(key), silence_seconds=1.0)


def refused(response: ProviderErrorResponse) -> ModelError:
    return ModelError(f"{response.status} {str(response.body)[:40]} {len(str(response.body))}")

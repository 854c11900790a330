"""The models that completions can name."""

from typing import Literal

import msgspec

from internal.agent.domain.errors import NotFound
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.schemas import EmptyRequest
from internal.channels.web.services import WebServices

DEFAULT_MODEL = "larkspur"
"""The name of the model that the settings choose."""


class CompletionModel(msgspec.Struct, frozen=True):
    """A model that a request can name."""

    id: str
    created: int = 0
    object: Literal["model"] = "model"
    owned_by: str = "larkspur"


class CompletionModels(msgspec.Struct, frozen=True):
    """The models that requests can name; the first one is the default."""

    data: tuple[CompletionModel, ...]
    object: Literal["list"] = "list"


async def list_completion_models(
    request: ApiRequest[EmptyRequest, EmptyRequest],
) -> CompletionModels:
    """List the models for completions."""
    names = (DEFAULT_MODEL, *_available(request.services))
    return CompletionModels(tuple(map(CompletionModel, names)))


def chosen_model(services: WebServices, name: str) -> str | None:
    """Return the model that a request names, None for that of the settings.

    Raises:
        NotFound: there is no such model.
    """
    if name in {"", DEFAULT_MODEL}:
        return None
    if name not in (known := _available(services)):
        listed = ", ".join((DEFAULT_MODEL, *known))
        raise NotFound(f"There is no model {name[:80]}. The models are: {listed}.")
    return name


def _available(services: WebServices) -> list[str]:
    return [model.name for model in services.models.models if model.available]

"""The models that completions can name."""

from typing import Literal

import msgspec

from internal.agent.domain.errors import NotFound
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.schemas import EmptyRequest
from internal.channels.web.services import WebServices

DEFAULT_MODEL = "larkspur"
"""The name of the model that the settings choose."""
PLAIN_MODEL = "larkspur-plain"
"""The name for single replies of a model, without a run."""


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
    return CompletionModels(tuple(map(CompletionModel, _names(request.services))))


async def show_completion_model(
    request: ApiRequest[EmptyRequest, EmptyRequest],
) -> CompletionModel:
    """Return a model for completions."""
    name = request.path["model"]
    if name not in _names(request.services):
        raise _unknown(request.services, name)
    return CompletionModel(name)


def chosen_model(services: WebServices, name: str) -> str | None:
    """Return the model that a request for a run names, or None to use the configured one.

    Raises:
        NotFound: there is no such model.
    """
    if name in {"", DEFAULT_MODEL}:
        return None
    if name not in _available(services):
        raise _unknown(services, name)
    return name


def _names(services: WebServices) -> list[str]:
    plain = [] if services.plain is None else [PLAIN_MODEL]
    return [DEFAULT_MODEL, *plain, *_available(services)]


def _available(services: WebServices) -> list[str]:
    return [model.name for model in services.models.models if model.available]


def _unknown(services: WebServices, name: str) -> NotFound:
    listed = ", ".join(_names(services))
    return NotFound(f"There is no model {name[:80]}. The models are: {listed}.")

"""Routes for the keys of models, the default model and the app of the Lark channel.

Keys and secrets can be written and removed, never read.
"""

from typing import Annotated, Any

from msgspec import Meta

from internal.agent.domain.errors import Conflict, InvalidRequest
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.schemas import EmptyRequest, Name, RequestModel
from internal.channels.web.services import (
    Finding,
    Findings,
    LarkApp,
    LarkAppView,
    ModelAccess,
    ProvidersView,
    ServerModelsView,
    Setup,
)

Credential = Annotated[str, Meta(min_length=1, max_length=1_000, pattern="^[!-~]+$")]
"""A key or secret: printable ASCII without spaces."""


EnteredText = Annotated[str, Meta(min_length=1, max_length=2_000)]
"""A pasted key or address; surrounding characters, such as quotes, are removed."""


class StoreKeyRequest(RequestModel, frozen=True):
    """The key of a provider, and its address in place of its own; "" is its own address."""

    key: EnteredText | None = None
    base_url: Annotated[str, Meta(max_length=2_000)] | None = None


class CheckKeyRequest(RequestModel, frozen=True):
    """A key, an address and a model to try; without them those that are set."""

    key: EnteredText | None = None
    base_url: EnteredText | None = None
    model: Name | None = None


class ChooseModelRequest(RequestModel, frozen=True):
    """The default model, as `provider:name`."""

    model: Name


class LarkAppRequest(RequestModel, frozen=True):
    """The credentials of an app. `domain` is `feishu`, `lark` or an origin."""

    app_id: Credential
    app_secret: Credential
    domain: Name = "feishu"

    @property
    def app(self) -> LarkApp:
        """The credentials."""
        return LarkApp(self.app_id, self.app_secret, self.domain)


class CheckLarkRequest(RequestModel, frozen=True):
    """The credentials of an app to check; without them those of the channel that runs."""

    app_id: Credential | None = None
    app_secret: Credential | None = None
    domain: Name = "feishu"

    @property
    def app(self) -> LarkApp | None:
        """The credentials, None to use the running channel's.

        Raises:
            InvalidRequest: one of the two is missing.
        """
        if self.app_id is None and self.app_secret is None:
            return None
        if self.app_id is None or self.app_secret is None:
            raise InvalidRequest(
                "Name app_id and app_secret, or none of them.", reason_code="app_incomplete"
            )
        return LarkApp(self.app_id, self.app_secret, self.domain)


async def list_providers(request: ApiRequest[EmptyRequest, EmptyRequest]) -> ProvidersView:
    """List the providers of models, and whether their keys are set. Requires the owner role."""
    return _setup(request).list_providers(request.principal)


async def check_key(request: ApiRequest[EmptyRequest, CheckKeyRequest]) -> Finding:
    """Try the address and the key, then ask a model for a word. May cost a few tokens.

    Nothing is stored. A key is sent to the host that is named and to the provider's own ones.
    """
    body = request.body
    access = ModelAccess(body.key or "", body.base_url or "", body.model or "")
    return await _setup(request).check_key(request.principal, request.path["name"], access)


async def list_server_models(request: ApiRequest[EmptyRequest, EmptyRequest]) -> ServerModelsView:
    """Ask the server of a provider which models it has. Requires the owner role."""
    return await _setup(request).list_server_models(request.principal, request.path["name"])


async def store_key(request: ApiRequest[EmptyRequest, StoreKeyRequest]) -> ProvidersView:
    """Store the key or the address of a provider. The gateway starts again if it uses it."""
    return await _setup(request).store_key(
        request.principal, request.path["name"], request.body.key, request.body.base_url
    )


async def remove_key(request: ApiRequest[EmptyRequest, EmptyRequest]) -> ProvidersView:
    """Remove the stored key of a provider."""
    return await _setup(request).store_key(request.principal, request.path["name"], "", None)


async def choose_model(request: ApiRequest[EmptyRequest, ChooseModelRequest]) -> ProvidersView:
    """Choose the default model. The gateway starts again; active runs continue with it."""
    return await _setup(request).choose_model(request.principal, request.body.model)


async def show_lark(request: ApiRequest[EmptyRequest, EmptyRequest]) -> LarkAppView:
    """Return the app of the Lark channel. Requires the owner role."""
    return _setup(request).show_lark(request.principal)


async def check_lark(request: ApiRequest[EmptyRequest, CheckLarkRequest]) -> Findings:
    """Check an app at Lark, without storing it: its bot, scopes, events and callbacks."""
    return Findings(await _setup(request).check_lark(request.principal, request.body.app))


async def connect_lark(request: ApiRequest[EmptyRequest, LarkAppRequest]) -> LarkAppView:
    """Store the app of the Lark channel and connect to Lark. The gateway starts again."""
    return await _setup(request).connect_lark(request.principal, request.body.app)


async def disconnect_lark(request: ApiRequest[EmptyRequest, EmptyRequest]) -> LarkAppView:
    """Remove the stored app of the Lark channel. The gateway starts again."""
    return await _setup(request).connect_lark(request.principal, None)


def _setup(request: ApiRequest[Any, Any]) -> Setup:
    if request.services.setup is None:
        raise Conflict(
            "Settings can be changed in a gateway only: start `larkspur serve`.",
            reason_code="settings_by_gateway",
        )
    return request.services.setup

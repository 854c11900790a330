"""Changes the settings that people make on the page: keys, the default model and the Lark app.

They are stored in the home folder, below the configuration file and the environment. The gateway
starts again with them, so that every part reads them in one way.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

from internal.agent.domain.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    ModelError,
)
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.messages import Message, Text
from internal.agent.domain.principals import AuditEntry, Principal
from internal.agent.domain.secrets import register_secret
from internal.agent.ports.llm import ModelRequest
from internal.channels.web.services import (
    Finding,
    LarkApp,
    LarkAppView,
    ModelAccess,
    ProvidersView,
    ProviderView,
    ServerModelsView,
)
from internal.config import home
from internal.config.loader import Loaded
from internal.llm.addresses.check import AddressRequest, check_address, list_server_models
from internal.llm.addresses.model_list import doubt_listed_model
from internal.llm.addresses.variants import addresses_of
from internal.llm.model_factory import build_model
from internal.model_providers.registry import PROVIDERS, Provider
from internal.settings.entered_text import clean_address, clean_key
from internal.settings.llm import LlmSettings
from internal.settings.server import ServerSettings
from internal.settings.settings import Settings
from internal.settings.types import ConfigError
from larkspur.model_check import request_for
from larkspur.model_list import list_models
from larkspur.provider_access import (
    Stored,
    change_access,
    key_origin,
    require_changeable_key,
    require_key,
    require_provider,
    stored_origin,
)
from larkspur.services import Services

CHECK_SECONDS = 45.0
"""How long the check of a key or of an app may take."""
SIMULATED = "flag"
"""The origin of the app of the simulator, the only one that no person chose."""
_LARK_KEYS = ("enabled", "app_id", "app_secret", "domain")
ADDRESS_SECONDS = 12.0
"""How long an address and a key may be tried before a model is asked."""
_MAX_OUTPUT_TOKENS = 1_024  # models that think need some before the first word


class SettingsEditor:
    """Implements `internal.channels.web.services.Setup`.

    `reload` reads all settings, with further `flags` or other `stored` ones if they are given;
    `restart` is called after a change that the running gateway does not have.
    """

    def __init__(
        self,
        loaded: Loaded,
        services: Services,
        *,
        reload: Callable[..., Loaded],
        restart: Callable[[], None],
    ) -> None:
        self._loaded = loaded
        self._services = services
        self._reload = reload
        self._restart = restart
        self._changing = asyncio.Lock()
        self._is_pending = False

    def list_providers(self, principal: Principal) -> ProvidersView:
        """Return the providers; raise Forbidden unless the principal is the owner."""
        _require_owner(principal)
        return self._providers()

    async def check_key(self, principal: Principal, provider: str, access: ModelAccess) -> Finding:
        """Try an address and a key of the provider, then ask one of its models for a word."""
        _require_owner(principal)
        found = require_provider(provider)
        request = self._requested(
            lambda: request_for(
                self._loaded, self._reload, found, key=access.key, address=access.base_url
            )
        )
        report = await check_address(request)
        left_out = _left_out(access)
        if report.state == "fail":
            advice = f"{report.advice} {left_out}".strip()
            return Finding("fail", report.sentence, advice, report.base_url, report.provider)
        name = access.model or found.default_model
        chosen = {"provider": provider, "model": name, "api_key": request.key or None}
        llm = self._load(flags={"llm": chosen}).settings.llm
        once = {"fallbacks": (), "max_retries": 1, "base_url": request.address}
        answer = await _ask_model(found, llm.model_copy(update=once), name)
        doubt = doubt_listed_model(name, report.models or (), found.title)
        if answer.state == "fail" and doubt:
            return Finding("fail", doubt, answer.sentence)
        return Finding(answer.state, answer.sentence, left_out)

    async def list_server_models(self, principal: Principal, provider: str) -> ServerModelsView:
        """Ask the server of a provider which models it has."""
        _require_owner(principal)
        found = require_provider(provider)
        request = self._requested(lambda: request_for(self._loaded, self._reload, found))
        report = await list_server_models(request)
        finding = Finding(
            report.state, report.sentence, report.advice, report.base_url, report.provider
        )
        return ServerModelsView(report.models or (), finding)

    async def store_key(
        self, principal: Principal, provider: str, key: str | None, base_url: str | None
    ) -> ProvidersView:
        """Store the key and the address of a provider; "" removes one, None leaves it.

        The first key also chooses its provider, instead of the demo model.
        """
        _require_owner(principal)
        found = require_provider(provider)
        if key is None and base_url is None:
            raise InvalidRequest("Name a key or a base_url.")
        key = clean_key(key).value if key else key
        base_url = clean_address(base_url).value if base_url else base_url
        if key:
            require_key(found)
            register_secret(key)
        if key is not None:
            require_changeable_key(self._loaded, found)

        def change(stored: Stored) -> None:
            change_access(stored, self._loaded, found, key=key, base_url=base_url)

        what = "key" if base_url is None else "address" if key is None else "key and address"
        action = "stored" if key or base_url else "removed"
        await self._change(principal, f"{what} of {provider} {action}", change)
        return self._providers()

    async def choose_model(self, principal: Principal, model: str) -> ProvidersView:
        """Choose the default model, `provider:name`."""
        _require_owner(principal)
        provider, _, name = model.partition(":")
        require_provider(provider)
        if not name.strip():
            raise InvalidRequest(
                "model must have the form provider:name, such as openai:gpt-6-sol."
            )
        if origin := self._loaded.provider_origin:
            raise Conflict(f"The model is chosen by {origin}. Change it there.")

        def change(stored: Stored) -> None:
            stored.setdefault("llm", {}).update(provider=provider, model=name)

        await self._change(principal, f"default model {model}", change)
        return self._providers()

    def show_lark(self, principal: Principal) -> LarkAppView:
        """Return the app of the Lark channel; raise Forbidden unless the principal is the owner."""
        _require_owner(principal)
        return self._lark_app()

    async def check_lark(self, principal: Principal, app: LarkApp | None) -> list[Finding]:
        """Check an app at Lark without storing it; None stands for the app of the settings."""
        _require_owner(principal)
        from internal.channels.lark.app_check import check_app  # noqa: PLC0415 - only for this

        settings = self._loaded.settings.channels.lark
        if app is not None:
            register_secret(app.app_secret)
            lark = {"enabled": True, **app._asdict()}
            settings = self._load(flags={"channels": {"lark": lark}}).settings.channels.lark
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                found = await check_app(settings, self._services.clock)
        except TimeoutError:
            return [Finding("fail", f"Lark did not answer within {CHECK_SECONDS:g} seconds.")]
        return [Finding(*one) for one in found]

    async def connect_lark(self, principal: Principal, app: LarkApp | None) -> LarkAppView:
        """Store the app of the Lark channel; None removes it."""
        _require_owner(principal)
        if app is not None:
            register_secret(app.app_secret)
        if origin := self._lark_app().set_by:
            raise Conflict(f"The Lark app is set by {origin}. Change it there.")

        def change(stored: Stored) -> None:
            lark = stored.setdefault("channels", {}).setdefault("lark", {})
            for name in _LARK_KEYS:
                lark.pop(name, None)
            if app is not None:
                lark |= {"enabled": True, **app._asdict()}

        what = "Lark app removed" if app is None else f"Lark app {app.app_id}"
        await self._change(principal, what, change)
        return self._lark_app()

    def _providers(self) -> ProvidersView:
        loaded, llm = self._loaded, self._loaded.settings.llm
        listed = list(list_models(loaded))
        views = (
            ProviderView(
                one.name,
                one.title,
                next(model.key for model in listed if model.provider == one.name),
                key_origin(loaded, one),
                tuple(model.model for model in listed if model.provider == one.name),
                next(iter(addresses_of(one)), ""),
                str(loaded.stored.get("llm.base_urls", {}).get(one.name, "")),
            )
            for one in PROVIDERS
        )
        default = f"{llm.provider}:{llm.model}"
        return ProvidersView(default, loaded.provider_origin, tuple(views), self._is_pending)

    def _requested(self, make: Callable[[], AddressRequest]) -> AddressRequest:
        """Return the address and key to try, in the time that a request of the page may take."""
        try:
            return make()._replace(seconds=ADDRESS_SECONDS)
        except ConfigError as error:
            raise InvalidRequest(str(error)) from error

    def _lark_app(self) -> LarkAppView:
        lark = self._loaded.settings.channels.lark
        origins = [self._loaded.origins.get(f"channels.lark.{name}", "") for name in _LARK_KEYS]
        changeable = {"", SIMULATED, stored_origin(self._loaded)}
        return LarkAppView(
            enabled=lark.enabled,
            app_id=lark.app_id or "",
            domain=lark.domain,
            simulated=SIMULATED in origins,
            set_by=next((origin for origin in origins if origin not in changeable), ""),
            pending=self._is_pending,
        )

    def _load(self, **changes: Mapping[str, Any]) -> Loaded:
        """Return the settings with other `flags`, or other `stored` ones.

        Raises:
            InvalidRequest: they are not valid together.
        """
        try:
            return self._reload(**changes)
        except ConfigError as error:
            raise InvalidRequest(str(error)) from error

    async def _change(
        self, principal: Principal, what: str, change: Callable[[Stored], None]
    ) -> None:
        """Check and store a change."""
        async with self._changing:
            stored = home.read_stored_settings(self._loaded.home)
            change(stored)
            loaded = self._load(stored=stored)
            try:
                build_model(loaded.settings.llm).check_key()
            except ModelError as error:
                raise InvalidRequest(str(error)) from error
            await asyncio.to_thread(home.write_stored_settings, loaded.home, stored)
            await self._record(principal, what)
            is_new = _used_settings(loaded) != _used_settings(self._loaded)
            self._loaded = loaded
        if is_new:
            self._is_pending = True
            self._restart()

    async def _record(self, principal: Principal, what: str) -> None:
        at = rfc3339(self._services.clock.now())
        entry = AuditEntry(at, principal.id, "web", "settings.changed", what, "")
        audit = self._services.stores.audit
        await self._services.database.write(lambda: audit.add(entry))


def _require_owner(principal: Principal) -> None:
    if not principal.may("owner"):
        raise Forbidden("Only the owner can see and change the settings.")


async def _ask_model(provider: Provider, llm: LlmSettings, name: str) -> Finding:
    """Ask a model for a word."""
    client = build_model(llm)
    request = ModelRequest(
        model=name,
        system="Answer with one word.",
        messages=(Message("user", (Text("Say hello."),)),),
        max_output_tokens=_MAX_OUTPUT_TOKENS,
    )
    try:
        client.check_key()
        async with asyncio.timeout(CHECK_SECONDS), aclosing(client.stream(request)) as reply:
            async for _ in reply:
                pass
    except ModelError as error:
        return Finding("fail", str(error))
    except TimeoutError:
        return Finding("fail", f"{provider.title} did not answer within {CHECK_SECONDS:g} seconds.")
    finally:
        await client.close()
    return Finding("ok", f"{name} of {provider.title} answers.")


def _left_out(access: ModelAccess) -> str:
    """Return sentences about the parts removed from the entered values, or ""."""
    sentences = (
        clean_key(access.key).sentence("the key"),
        clean_address(access.base_url).sentence("the address"),
    )
    return " ".join(filter(None, sentences))


def _used_settings(loaded: Loaded) -> Settings:
    """Return the settings without unused ones and without the ones that no change affects."""
    settings, llm = loaded.settings, loaded.settings.llm
    used = {one.partition(":")[0] for one in llm.fallbacks}
    keys = {name: key for name, key in llm.keys.items() if name in used}
    addresses = {name: one for name, one in llm.base_urls.items() if name in used}
    own = {"keys": keys, "base_urls": addresses}
    changes = {"llm": llm.model_copy(update=own), "server": ServerSettings()}
    return settings.model_copy(update=changes)

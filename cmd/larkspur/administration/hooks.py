"""The hooks and webhooks of the settings, for the commands of the owner."""

import asyncio

from internal.channels.cli.application import HookItem, HookTrial
from internal.config.loader import Loaded
from internal.hooks.signature import suits_libraries
from internal.hooks.signed_post import SignedPoster
from internal.hooks.trial import Trial, try_hook, try_webhook
from internal.observability.clock import SystemClock
from internal.settings.hooks import HookSettings, WebhookSettings


class HookAdmin:
    """Lists and tries the hooks and webhooks of the settings."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded

    def items(self) -> list[HookItem]:
        """Return the webhooks, then the hooks, in the order of the settings."""
        return [_item(number, each) for number, each in enumerate(self._all())]

    def try_out(self, item: HookItem) -> HookTrial:
        """Send a test event to a webhook, or ask a hook about an example."""
        trial = asyncio.run(self._try(item))
        return HookTrial(item.name, item.kind, **trial._asdict())

    def _all(self) -> list[HookSettings | WebhookSettings]:
        return [*self._loaded.settings.webhooks, *self._loaded.settings.hooks]

    async def _try(self, item: HookItem) -> Trial:
        tried = self._all()[item.number]
        clock = SystemClock()
        poster = SignedPoster(clock)
        try:
            if isinstance(tried, WebhookSettings):
                return await try_webhook(tried, poster, clock)
            return await try_hook(tried, poster, self._loaded.home)
        finally:
            await poster.close()


def _item(number: int, settings: HookSettings | WebhookSettings) -> HookItem:
    is_webhook = isinstance(settings, WebhookSettings)
    return HookItem(
        settings.title,
        "webhook" if is_webhook else "hook",
        settings.events if isinstance(settings, WebhookSettings) else (settings.event,),
        number,
        settings.secret is None or suits_libraries(settings.secret.get_secret_value()),
    )

"""Check the app in Lark's developer console: credentials, bot, scopes, events and callbacks.

Events belong to the published version, callbacks to the app. This follows the SDK's models and
public clients; it was not tried with a real app.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from internal.agent.ports.runtime import Clock
from internal.channels.lark.api import (
    LarkClient,
    LarkRejected,
    LarkRequest,
    LarkUnavailable,
    SendPolicy,
)
from internal.channels.lark.channel import read_credentials
from internal.channels.lark.connection import AppCredentials
from internal.settings.lark import LarkSettings

APP_INFO_SCOPES = ("application:application:self_manage", "admin:app.info:readonly")
"""Either of them allows the app to read its own events and callbacks."""
_NO_SCOPE, _GRANTED, _ENABLED = 99991672, 1, 1
_POLICY = SendPolicy(max_attempts=2, max_delay=2.0, timeout=10.0)
_LONG_CONNECTION = "websocket"

State = Literal["ok", "warn", "fail"]


class AppFinding(NamedTuple):
    """A fact about the app. `fail`: something essential does not work; `advice` is a solution."""

    state: State
    sentence: str
    advice: str = ""


class _Need(NamedTuple):
    """Something the app needs: one of `names`, the narrowest first. `without` it, that happens."""

    names: tuple[str, ...]
    state: State
    without: str


_SCOPES = (
    _Need(("im:message:send_as_bot", "im:message"), "fail", "no reply can be sent"),
    _Need(
        ("im:message.p2p_msg:readonly", "im:message.p2p_msg"),
        "fail",
        "direct messages are not received",
    ),
    _Need(
        ("im:message.group_at_msg:readonly", "im:message.group_at_msg", "im:message.group_msg"),
        "fail",
        "mentions in groups are not received",
    ),
    _Need(
        ("im:message:readonly", "im:message"),
        "warn",
        "quoted messages cannot be read, nor can a reply with unknown outcome be found again",
    ),
    _Need(
        ("im:message.reactions:write_only", "im:message"),
        "warn",
        "messages in progress get no reaction",
    ),
    _Need(("im:resource", "im:resource:upload"), "warn", "long answers cannot be sent as files"),
    _Need(
        ("im:message.group_msg",),
        "warn",
        "in groups only mentions are received, the messages before them are not read, and a reply"
        " with unknown outcome is not found again",
    ),
    _Need(
        ("contact:user.base:readonly", "contact:contact.base:readonly"),
        "warn",
        "people have no names",
    ),
    _Need(
        ("im:chat:read", "im:chat:readonly", "im:chat"),
        "warn",
        "groups whose cards people share have no names",
    ),
    _Need(
        ("im:chat.members:read", "im:chat:readonly", "im:chat"),
        "warn",
        "answers cannot mention people of a group",
    ),
    _Need(
        ("tenant:tenant:readonly",),
        "warn",
        "your own organization is known only after the first event",
    ),
)
_URGENT = _Need(
    ("im:message.urgent", "im:message.urgent:app_send"),
    "warn",
    "people are not alerted to approvals that wait (channels.lark.urgent_after_minutes)",
)
_EVENTS = (
    _Need(("im.message.receive_v1",), "fail", "no message is received"),
    _Need(("im.message.recalled_v1",), "warn", "recalling a message does not stop its run"),
    _Need(("im.message.updated_v1",), "warn", "edits of messages are not noticed"),
    _Need(
        ("im.chat.member.bot.deleted_v1",),
        "warn",
        "runs of a group go on after the bot is removed from it",
    ),
    _Need(("im.chat.disbanded_v1",), "warn", "runs of a group go on after it is disbanded"),
    _Need(("im.message.reaction.created_v1",), "warn", "reactions on answers are no feedback"),
    _Need(
        ("im.message.reaction.deleted_v1",),
        "warn",
        "removing a reaction does not take the feedback back",
    ),
    _Need(
        ("im.chat.member.bot.added_v1",), "warn", "the bot does not introduce itself to new groups"
    ),
)
_CALLBACKS = (
    _Need(("card.action.trigger",), "fail", "the buttons of questions do nothing; texts work"),
)


async def check_app(settings: LarkSettings, clock: Clock) -> list[AppFinding]:
    """Return the problems of the configured app, or one finding that there are none.

    Makes at most five calls, and none if the channel is not enabled.
    """
    credentials = read_credentials(settings)
    if credentials is None:
        return [AppFinding("ok", "No app of Lark is set up.")]
    client = LarkClient(credentials, clock)
    scopes = _SCOPES if settings.urgent_after_minutes is None else (*_SCOPES, _URGENT)
    try:
        found = [one async for one in _AppCheck(client, credentials, scopes).findings()]
    except LarkUnavailable as error:
        advice = "Check channels.lark.app_id, app_secret and domain, and the way to Lark."
        found = [AppFinding("fail", f"The app cannot be checked: {error}.", advice)]
    finally:
        await client.close()
    fine = "The app has a bot and all scopes, events and callbacks."
    return found or [AppFinding("ok", fine)]


class _AppCheck:
    def __init__(
        self, client: LarkClient, credentials: AppCredentials, scopes: Sequence[_Need]
    ) -> None:
        self._scopes = scopes
        self._client, self._app_id = client, quote(credentials.app_id, safe="")
        self._console = f"{credentials.origin}/app/{self._app_id}"

    async def findings(self) -> AsyncGenerator[AppFinding]:
        """Yield the problems of the app.

        Raises:
            LarkUnavailable: the credentials are wrong, or Lark does not answer.
        """
        try:
            await self._get("/open-apis/bot/v3/info")
        except LarkRejected as error:
            advice = f"Add Features > Bot at {self._console}, and publish a version."
            yield AppFinding("fail", f"The app has no bot: {error}.", advice)
        try:
            scopes = (await self._get("/open-apis/application/v6/scopes")).get("scopes") or ()
        except LarkRejected as error:
            yield AppFinding("warn", f"The scopes cannot be read: {error}.")
        else:
            granted = {
                one.get("scope_name") for one in scopes if one.get("grant_status") == _GRANTED
            }
            for one in self._missing("scope", self._scopes, granted, "auth"):
                yield one
        try:
            async for one in self._subscriptions():
                yield one
        except LarkRejected as error:
            yield self._unreadable(error)

    async def _subscriptions(self) -> AsyncGenerator[AppFinding]:
        path = f"/open-apis/application/v6/applications/{self._app_id}"
        app = (await self._get(path, lang="zh_cn")).get("app") or {}
        if app.get("status") != _ENABLED:
            advice = f"Publish a version at {self._console}, or ask an administrator to enable it."
            yield AppFinding("fail", "The app is not enabled in its organization.", advice)
        version = app.get("online_version_id")
        events: set[Any] = set()
        if version:
            path = f"{path}/app_versions/{quote(str(version), safe='')}"
            published = (await self._get(path, lang="zh_cn")).get("app_version") or {}
            events = {one.get("event_type") for one in published.get("event_infos") or ()}
        for one in self._missing("event", _EVENTS, events, "event"):
            yield one
        callbacks = app.get("callback_info") or {}
        subscribed = set(callbacks.get("subscribed_callbacks") or ())
        for one in self._missing("callback", _CALLBACKS, subscribed, "event?tab=callback"):
            yield one
        kind = callbacks.get("callback_type") or _LONG_CONNECTION
        if kind != _LONG_CONNECTION:
            advice = f"Choose the long connection under Callback configuration at {self._console}."
            yield AppFinding("fail", f"Callbacks are sent by {kind}, not here.", advice)

    def _missing(
        self, kind: str, needs: Sequence[_Need], present: set[Any], page: str
    ) -> list[AppFinding]:
        where = f"{self._console}/{page}"
        return [
            AppFinding(
                need.state,
                f"The {kind} {need.names[0]} is missing: {need.without}.",
                f"Add it at {where} and publish a new version.",
            )
            for need in needs
            if present.isdisjoint(need.names)
        ]

    def _unreadable(self, error: LarkRejected) -> AppFinding:
        if error.code != _NO_SCOPE:
            return AppFinding("warn", f"Events and callbacks cannot be read: {error}.")
        sentence = f"Events and callbacks cannot be checked: the scope {APP_INFO_SCOPES[0]}"
        advice = f"Add it at {self._console}/auth and publish a new version."
        return AppFinding("warn", f"{sentence} or {APP_INFO_SCOPES[1]} is missing.", advice)

    async def _get(self, path: str, **query: str) -> Mapping[str, Any]:
        return await self._client.call(LarkRequest("GET", path, query=query or None), _POLICY)

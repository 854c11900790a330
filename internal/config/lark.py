"""Settings of the Lark channel."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from internal.config.types import Count, Seconds, Secret, Section, Text, is_loopback, key

ORIGINS = {"feishu": "https://open.feishu.cn", "lark": "https://open.larksuite.com"}
"""The addresses of the two services, by their names."""


def _domain(text: str) -> str:
    if text in ORIGINS:
        return text
    parts = urlsplit(text)
    host = parts.hostname or ""
    safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    if not host or not safe or parts.path.rstrip("/") or parts.query or parts.fragment:
        raise ValueError(
            "must be feishu, lark, or an origin such as https://open.feishu.cn"
            " (http:// only for this machine)"
        )
    return text.rstrip("/")


Domain = Annotated[Text, AfterValidator(_domain)]


BusyMode = Literal["steer", "queue", "interrupt"]
GroupPolicy = Literal["mention", "open", "thread"]
PlanReview = Literal["off", "complex", "always"]


class LarkAccess(Section):
    """Who may talk and who may operate in Lark: open_ids, chat_ids, or * for everyone."""

    talk: tuple[Text, ...] = key(("*",), "Who may submit tasks; * is everyone who can see the app.")
    operate: tuple[Text, ...] = key(
        (), "Who may answer questions and stop runs of others, besides paired operators."
    )


class LarkGroup(Section):
    """Settings of one group; unset ones are inherited. `off`: the bot is silent there."""

    policy: Literal["mention", "open", "thread", "off"] | None = None
    talk: tuple[Text, ...] | None = None
    operate: tuple[Text, ...] | None = None
    busy_mode: BusyMode | None = None


class LarkSettings(Section):
    """The Lark (Feishu) channel."""

    enabled: bool = key(False, "true connects to Lark; requires app_id and app_secret.")
    app_id: Text | None = key(None, "The app's id, such as cli_a1b2c3.")
    app_secret: Secret | None = key(None, "The app's secret.")
    domain: Domain = key("feishu", "feishu, lark, or the origin of a Lark server.")
    busy_mode: BusyMode = key(
        "steer",
        "A message during a run: steer adds it to the run, queue makes it the next task,"
        " interrupt stops the run.",
    )
    allow_direct: bool = key(True, "Whether the bot answers in direct chats.")
    allow_groups: bool = key(True, "Whether the bot answers in groups.")
    group_policy: GroupPolicy = key(
        "mention",
        "In groups: mention answers when mentioned, open answers every message, thread"
        " answers every message in threads that it takes part in.",
    )
    groups: Mapping[Text, LarkGroup] = key(
        {},
        "{chat_id: {policy, talk, operate, busy_mode}} of single groups; policy may also be off.",
    )
    run_timeout_seconds: Seconds = key(900.0, "Timeout of a run from Lark, in seconds.")
    react_emoji: Text = key(
        "Typing", "Reaction on a message while its run is in progress; off for none."
    )
    progress: Literal["card", "text", "off"] = key(
        "card", "How a run in progress is shown: card, text or off."
    )
    max_age_minutes: Count = key(
        60, "Minutes after which a delayed message gets an apology instead of a run."
    )
    plan_review: PlanReview | None = key(
        None, "As agent.plan_review, for runs from Lark; unset: inherited."
    )
    question_ttl_minutes: Annotated[Count, Field(le=525_600)] | None = key(
        None, "As agent.question_ttl_minutes, for questions from Lark; unset: inherited."
    )
    access: LarkAccess = LarkAccess()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.enabled and (self.app_id is None or self.app_secret is None):
            missing = "app_id" if self.app_id is None else "app_secret"
            raise ValueError(
                f"enabled is true, but {missing} is not set; copy it from the app's page in the"
                " developer console"
            )
        return self

    @property
    def origin(self) -> str:
        """The origin of REST calls and of endpoint discovery."""
        return ORIGINS.get(self.domain, self.domain)

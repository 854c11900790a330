"""The settings of the Lark channel: which app it is, who may use it, and how it behaves there."""

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

    talk: tuple[Text, ...] = key(("*",), "Who may give tasks; * is everyone who sees the app.")
    operate: tuple[Text, ...] = key(
        (), "Who may answer questions and stop others' runs, besides those paired."
    )


class LarkGroup(Section):
    """One group; what is not set is as the channel has it. `off`: the bot is silent there."""

    policy: Literal["mention", "open", "thread", "off"] | None = None
    talk: tuple[Text, ...] | None = None
    operate: tuple[Text, ...] | None = None
    busy_mode: BusyMode | None = None


class LarkSettings(Section):
    """The Lark (Feishu) channel."""

    enabled: bool = key(False, "true connects to Lark; needs app_id and app_secret.")
    app_id: Text | None = key(None, "The app's id, such as cli_a1b2c3.")
    app_secret: Secret | None = key(None, "The app's secret.")
    domain: Domain = key("feishu", "feishu, lark, or the origin of a Lark server.")
    busy_mode: BusyMode = key(
        "steer",
        "A message during a run: steer goes into it, queue is the next task, interrupt stops it.",
    )
    allow_direct: bool = key(True, "Whether the bot answers in direct chats.")
    allow_groups: bool = key(True, "Whether the bot answers in groups.")
    group_policy: GroupPolicy = key(
        "mention",
        "In groups: mention answers when it is mentioned, open answers everything, thread"
        " everything in threads that it takes part in.",
    )
    groups: Mapping[Text, LarkGroup] = key(
        {},
        "{chat_id: {policy, talk, operate, busy_mode}} for single groups; policy may also be off.",
    )
    run_timeout_seconds: Seconds = key(900.0, "Longest running time of a run from Lark.")
    react_emoji: Text = key(
        "Typing", "Reaction on a message while its run is not over; off for none."
    )
    progress: Literal["card", "text", "off"] = key(
        "card", "How a run is shown while it works: a card, a text, or off."
    )
    max_age_minutes: Count = key(
        60, "A message that arrives later than this gets an apology instead of a run."
    )
    plan_review: PlanReview | None = key(
        None, "Which plans from Lark a person agrees to first; unset: as agent.plan_review."
    )
    question_ttl_minutes: Annotated[Count, Field(le=525_600)] | None = key(
        None, "How long a question from Lark is open; unset: as agent.question_ttl_minutes."
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
        """The origin that REST calls and discovery go to."""
        return ORIGINS.get(self.domain, self.domain)

"""The rules of a chat: the settings of its channel and its group, and its members' choices."""

from datetime import timedelta
from typing import Literal

import msgspec

from internal.agent.app.task_options import TaskDefaults, profile_policy
from internal.agent.domain.chats import ChatSettings
from internal.agent.domain.permissions.network import (
    NetworkSetting,
    rules_of_network,
    widens_network,
)
from internal.agent.domain.permissions.policy import Policy, with_network
from internal.agent.domain.tasks import Profile
from internal.settings.chat import BusyMode, ChatChannelSettings, SessionScope


class ChatRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one chat, resolved once per message.

    `group_policy` is `off` where the bot is silent in groups. `context_size` is the number of
    earlier messages that accompany a message to the bot in a group. `network` is the maximum
    access of commands, None if neither group nor channel sets it; `group_profile` is "" likewise.
    """

    chat_id: str
    allow_direct: bool
    group_policy: Literal["mention", "open", "thread", "off"]
    answer_bots: bool
    talk: tuple[str, ...]
    operate: tuple[str, ...]
    max_age: timedelta
    busy_mode: BusyMode
    session_scope: SessionScope
    context_size: int
    run_timeout_seconds: float
    network: NetworkSetting | None
    group_profile: str
    chosen: ChatSettings

    @property
    def profile(self) -> str:
        """The name of the profile that the chat or its group has chosen, "" for the usual one."""
        return self.chosen.profile or self.group_profile

    def serves(self, *, is_direct: bool) -> bool:
        """Return True if the bot answers at all in the chat, a direct one or a group."""
        return self.allow_direct if is_direct else self.group_policy != "off"

    def policy(self, defaults: TaskDefaults, profile: Profile) -> Policy:
        """Return the permission policy for tasks of the chat.

        Args:
            defaults: the values of the settings.
            profile: that of the chat; it does not exceed the network of the group or channel.
        """
        policy = profile_policy(defaults, profile)
        if self.network is not None and (
            profile.network is None
            or widens_network(rules_of_network(self.network), profile.network)
        ):
            policy = with_network(policy, defaults.possible_network(self.network))
        return with_network(policy, defaults.possible_network(self.chosen.network))


def resolve_rules(
    settings: ChatChannelSettings, chat_id: str, chosen: ChatSettings | None = None
) -> ChatRules:
    """Return the rules of a chat; values of its group override values of the channel.

    `chosen` are the settings chosen in the chat, if any.
    """
    group, access = settings.group(chat_id), settings.access
    has_context = group.auto_chat_context
    has_context = settings.auto_chat_context if has_context is None else has_context
    return ChatRules(
        chat_id=chat_id,
        allow_direct=settings.allow_direct,
        group_policy=(group.policy or settings.group_policy) if settings.allow_groups else "off",
        answer_bots=settings.answer_bots,
        talk=access.talk if group.talk is None else group.talk,
        operate=access.operate if group.operate is None else group.operate,
        max_age=timedelta(minutes=settings.max_age_minutes),
        busy_mode=group.busy_mode or settings.busy_mode,
        session_scope=group.session_scope or settings.session_scope,
        context_size=settings.auto_chat_context_size if has_context else 0,
        run_timeout_seconds=settings.run_timeout_seconds,
        network=settings.network if group.network is None else group.network,
        group_profile=group.profile or "",
        chosen=chosen or ChatSettings(),
    )

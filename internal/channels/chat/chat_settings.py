"""Commands that change or show the settings, usage and pairing of a chat."""

import re

import msgspec

from internal.agent.app.access import TooManyAttempts, WrongCode
from internal.agent.app.gateway import Gateway
from internal.agent.app.task_options import TaskDefaults, choose_network
from internal.agent.domain.chats import ChatSettings
from internal.agent.domain.errors import Forbidden, InvalidRequest
from internal.agent.domain.permissions.network import (
    NetworkSetting,
    network_hosts,
    network_kind,
)
from internal.agent.domain.permissions.policy import Policy, with_network
from internal.agent.domain.permissions.rules import RuleError
from internal.agent.domain.plans import PlanReview
from internal.channels.chat.answers import MessageContext
from internal.channels.chat.command_parser import ChatCommand
from internal.channels.chat.policy import ChatUsers
from internal.channels.network_choice import parse_network_choice
from internal.config.chat import ChatChannelSettings
from internal.i18n.chat import find_switch

_MODEL_NAME = re.compile(r"[\w.:/@+-]{1,100}")


def chat_policy(
    defaults: TaskDefaults, configured: ChatChannelSettings, chat_id: str, chosen: ChatSettings
) -> Policy:
    """Return the permission policy for tasks of a chat: its group's network, or the chosen one."""
    policy = defaults.policy
    for setting in (configured.group(chat_id).network, chosen.network):
        policy = with_network(policy, defaults.possible_network(setting))
    return policy


class SettingsCommands:
    """Handles /plan, /model, /network, /usage and /pair. Only operators change settings."""

    def __init__(
        self,
        gateway: Gateway,
        people: ChatUsers,
        *,
        configured: ChatChannelSettings,
        defaults: TaskDefaults,
    ) -> None:
        self._gateway, self._people = gateway, people
        self._configured, self._defaults = configured, defaults

    async def handle(self, command: ChatCommand, message: MessageContext) -> str:
        """Carry out a command and return the reply."""
        match command:
            case ChatCommand("plan", argument):
                return await self._plan(argument, message)
            case ChatCommand("model", argument):
                return await self._model(argument, message)
            case ChatCommand("network", argument):
                return await self._network(argument, message)
            case ChatCommand("pair", code):
                return await self._pair(code, message)
            case _:
                return await self._usage(message)

    async def _plan(self, argument: str, message: MessageContext) -> str:
        """Turn plan review on or off. Only the owner may turn off what the settings require."""
        phrases, actor, wanted = message.phrases, message.actor, find_switch(argument)
        settings = await self._gateway.chats.get_settings(actor.chat)
        if argument and wanted not in {"on", "off"}:
            return phrases("plan_how", command=phrases.command("plan"))
        if argument and not actor.principal.may("operate"):
            return phrases("setting_not_allowed")
        if argument:
            less: PlanReview | None = "off" if actor.principal.may("owner") else None
            settings = settings._replace(plan_review="always" if wanted == "on" else less)
            await self._gateway.chats.save_settings(actor.chat, settings)
        review = settings.plan_review or self._defaults.plan_review
        return phrases(f"plan_review_{review}", command=phrases.command("plan"))

    async def _model(self, argument: str, message: MessageContext) -> str:
        phrases, actor = message.phrases, message.actor
        settings = await self._gateway.chats.get_settings(actor.chat)
        if argument and not actor.principal.may("operate"):
            return phrases("setting_not_allowed")
        if argument and not _MODEL_NAME.fullmatch(argument):
            return phrases("model_how", command=phrases.command("model"))
        if argument:
            model = "" if find_switch(argument) == "default" else argument
            settings = settings._replace(model=model)
            await self._gateway.chats.save_settings(actor.chat, settings)
        if not settings.model:
            return phrases("model_default")
        return phrases("model", model=settings.model)

    async def _network(self, argument: str, message: MessageContext) -> str:
        """Choose what commands reach. Only the owner may choose more than the settings allow."""
        phrases, actor = message.phrases, message.actor
        if argument and not actor.principal.may("operate"):
            return phrases("setting_not_allowed")
        if argument:
            try:
                chosen = self._parse_network(argument, message)
            except RuleError:
                return phrases("network_how", command=phrases.command("network"))
            except InvalidRequest:
                return phrases("network_impossible")
            except Forbidden:
                return phrases("network_too_wide")
            settings = await self._gateway.chats.get_settings(actor.chat)
            await self._gateway.chats.save_settings(actor.chat, settings._replace(network=chosen))
        return await self.describe_isolation(message)

    def _parse_network(self, argument: str, message: MessageContext) -> NetworkSetting | None:
        """Return what is to be stored; None for the value of the settings.

        Raises:
            RuleError: something is not a host.
            InvalidRequest: the sandbox lets commands reach no host.
            Forbidden: the sender may not choose so much.
        """
        if find_switch(argument) == "default":
            return None
        chosen: NetworkSetting = msgspec.convert(parse_network_choice(argument), NetworkSetting)
        base = chat_policy(self._defaults, self._configured, message.chat.chat_id, ChatSettings())
        choose_network(self._defaults, base, chosen, message.actor.principal)
        return chosen

    async def describe_isolation(self, message: MessageContext) -> str:
        """Return whether the commands of the chat are isolated, and what they reach."""
        phrases = message.phrases
        if not self._defaults.isolated:
            return phrases("not_isolated")
        chosen = await self._gateway.chats.get_settings(message.actor.chat)
        policy = chat_policy(self._defaults, self._configured, message.chat.chat_id, chosen)
        kind = network_kind(policy.allow)
        hosts = f" ({', '.join(network_hosts(policy.allow))})" if kind == "hosts" else ""
        return phrases("isolated", network=f"{phrases(f'network_{kind}')}{hosts}")

    async def _pair(self, code: str, message: MessageContext) -> str:
        """Use a pairing code. A code that was posted in a group becomes invalid."""
        phrases, actor = message.phrases, message.actor
        command, access = phrases.command("pair"), self._gateway.access
        if not message.chat.is_direct:
            await access.revoke_code(code, actor.principal.id, actor.via)
            return phrases("pair_in_group", command=command)
        if not code:
            return phrases("pair_how", command=command)
        name = (await self._people.with_name(actor.principal)).name
        try:
            role = await access.redeem_code(code, actor.principal.id, name, actor.via)
        except WrongCode:
            return phrases("pair_wrong")
        except TooManyAttempts:
            return phrases("pair_too_many")
        return phrases(f"paired_{role}")

    async def _usage(self, message: MessageContext) -> str:
        """Return the tokens and the cost of the chat's current session."""
        phrases = message.phrases
        found = await self._gateway.chats.get_usage(message.actor.via, message.chat.scope)
        if found is None:
            return phrases("usage_none")
        usage, cost = found.usage, found.cost
        tokens = phrases(
            "usage", input=usage.total - usage.output_tokens, output=usage.output_tokens
        )
        return tokens if cost is None else f"{tokens} {phrases('usage_cost', cost=cost)}"

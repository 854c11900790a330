"""Commands that change or show the settings, usage and pairing of a chat."""

import re

import msgspec

from internal.agent.app.access import TooManyAttempts, WrongCode
from internal.agent.app.gateway import Gateway
from internal.agent.app.task_options import (
    TaskDefaults,
    choose_network,
    find_profile,
)
from internal.agent.capabilities.instructions.chat_instructions import ChatInstructions
from internal.agent.domain.chats import MAX_CHAT_INSTRUCTIONS_BYTES, ChatSettings
from internal.agent.domain.errors import Forbidden, InvalidRequest
from internal.agent.domain.permissions.network import (
    NetworkSetting,
    network_hosts,
    network_kind,
)
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.permissions.rules import RuleError
from internal.agent.domain.plans import PlanReview
from internal.agent.domain.tasks import Profile
from internal.agent.domain.text import escape_hidden, format_size
from internal.agent.ports.instructions import InstructionSource
from internal.channels.chat.answers import MessageContext, escape_markdown
from internal.channels.chat.chat_rules import ChatRules
from internal.channels.chat.command_parser import ChatCommand
from internal.channels.chat.policy import ChatUsers
from internal.channels.network_choice import parse_network_choice
from internal.i18n.catalog import MessageCatalog
from internal.i18n.chat import ChatPhrases, find_switch

_MODEL_NAME = re.compile(r"[\w.:/@+-]{1,100}")


def _source(source: InstructionSource, name: str, phrases: ChatPhrases) -> str:
    return phrases(f"instructions_of_{source}", name=name.replace("`", "'"))


class SettingsCommands:
    """Handles /plan, /model, /profile, /network, /instructions, /usage and /pair.

    Only operators change settings.
    """

    def __init__(
        self,
        gateway: Gateway,
        people: ChatUsers,
        *,
        defaults: TaskDefaults,
        instructions: ChatInstructions,
    ) -> None:
        self._gateway, self._people, self._applied = gateway, people, instructions
        self._defaults = defaults

    async def handle(self, command: ChatCommand, message: MessageContext) -> str:
        """Carry out a command and return the reply."""
        handlers = {
            "plan": self._plan,
            "model": self._model,
            "profile": self._profile,
            "network": self._network,
            "instructions": self._instructions,
            "pair": self._pair,
        }
        handler = handlers.get(command.name)
        if handler is None:
            return await self._usage(message)
        return await handler(command.argument, message)

    async def _plan(self, argument: str, message: MessageContext) -> str:
        """Turn plan review on or off. Only the owner may turn off what the settings require."""
        phrases, actor, wanted = message.phrases, message.actor, find_switch(argument)
        settings = message.rules.chosen
        if argument and wanted not in {"on", "off"}:
            return phrases("plan_how", command=phrases.command("plan"))
        if argument and not actor.principal.may("operate"):
            return phrases("setting_not_allowed")
        if argument:
            less: PlanReview | None = "off" if actor.principal.may("owner") else None
            settings = settings._replace(plan_review="always" if wanted == "on" else less)
            await self._choose(message, settings)
        review = settings.plan_review or self._defaults.plan_review
        return phrases(f"plan_review_{review}", command=phrases.command("plan"))

    async def _model(self, argument: str, message: MessageContext) -> str:
        phrases, actor, settings = message.phrases, message.actor, message.rules.chosen
        if argument and not actor.principal.may("operate"):
            return phrases("setting_not_allowed")
        if argument and not _MODEL_NAME.fullmatch(argument):
            return phrases("model_how", command=phrases.command("model"))
        if argument:
            model = "" if find_switch(argument) == "default" else argument
            settings = settings._replace(model=model)
            await self._choose(message, settings)
        if not settings.model:
            return phrases("model_default")
        return phrases("model", model=settings.model)

    async def _profile(self, argument: str, message: MessageContext) -> str:
        """Choose the profile of the chat's coming tasks."""
        phrases, actor, rules = message.phrases, message.actor, message.rules
        if argument and not actor.principal.may("operate"):
            return phrases("setting_not_allowed")
        if argument:
            name = "" if find_switch(argument) == "default" else argument.strip().lower()
            if name:
                try:
                    find_profile(self._defaults, name)
                except InvalidRequest as error:
                    return escape_markdown(str(error))
            rules = await self._choose(message, rules.chosen._replace(profile=name))
        chosen = rules.profile or self._defaults.profile
        known = "\n".join(
            f"- `{name}` {escape_markdown(profile.description)}".rstrip()
            for name, profile in sorted(self._defaults.profiles.items())
        )
        return phrases(
            "profile_is", profile=chosen, known=known, command=phrases.command("profile")
        )

    async def _network(self, argument: str, message: MessageContext) -> str:
        """Choose what commands reach. Only the owner may choose more than the settings allow."""
        phrases, actor, rules = message.phrases, message.actor, message.rules
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
            rules = await self._choose(message, rules.chosen._replace(network=chosen))
        return self.describe_isolation(message._replace(rules=rules))

    async def _choose(self, message: MessageContext, chosen: ChatSettings) -> ChatRules:
        """Store what the people of a chat have chosen, and return the rules of the chat now."""
        await self._gateway.chats.save_settings(message.actor.chat, chosen)
        return msgspec.structs.replace(message.rules, chosen=chosen)

    def _profile_of(self, rules: ChatRules) -> Profile:
        return self._defaults.profiles.get(rules.profile or self._defaults.profile, Profile())

    def _policy(self, rules: ChatRules) -> Policy:
        return rules.policy(self._defaults, self._profile_of(rules))

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
        rules = message.rules
        widest = msgspec.structs.replace(rules, chosen=rules.chosen._replace(network=None))
        base = self._policy(widest)
        choose_network(self._defaults, base, chosen, message.actor.principal)
        return chosen

    def describe_isolation(self, message: MessageContext) -> str:
        """Return whether the commands of the chat are isolated, and what they reach."""
        phrases = message.phrases
        if not self._defaults.isolated:
            return phrases("not_isolated")
        policy = self._policy(message.rules)
        kind = network_kind(policy.allow)
        hosts = f" ({', '.join(network_hosts(policy.allow))})" if kind == "hosts" else ""
        return phrases("isolated", network=f"{phrases(f'network_{kind}')}{hosts}")

    def describe_mode(self, message: MessageContext) -> str:
        """Return the permission mode of tasks of the chat, and what it allows."""
        rules = message.rules
        mode = self._profile_of(rules).narrow_mode(self._policy(rules).mode)
        modes = MessageCatalog("modes", message.phrases.language)
        return message.phrases("mode_is", name=modes(f"name_{mode}"), meaning=modes(mode))

    async def _instructions(self, argument: str, message: MessageContext) -> str:
        """Set, remove or show what the model is told to do in this chat."""
        phrases, actor = message.phrases, message.actor
        command, settings = phrases.command("instructions"), message.rules.chosen
        if argument and not actor.principal.may("operate"):
            return phrases("setting_not_allowed")
        text = "" if find_switch(argument) in {"off", "default"} else argument
        size, most = len(text.encode("utf-8", "replace")), MAX_CHAT_INSTRUCTIONS_BYTES
        if size > most:
            return phrases("instructions_too_long", size=format_size(size), most=format_size(most))
        if argument:
            settings = settings._replace(instructions=text)
            await self._choose(message, settings)
        shown = escape_hidden(settings.instructions).strip()
        own = phrases("instructions" if shown else "instructions_none", command=command, text=shown)
        return f"{own}\n\n{await self._list_instructions(settings.instructions, message)}"

    async def _list_instructions(self, text: str, message: MessageContext) -> str:
        """Return the texts that apply in a chat, with their sizes, and the files that do not."""
        phrases, workspace = message.phrases, self._defaults.workspace
        found = await self._applied.find(
            message.actor.via, message.chat.scope, workspace=workspace, text=text
        )
        lines = [
            phrases(
                "instructions_cut" if block.left_out else "instructions_line",
                source=_source(block.source, block.name, phrases),
                size=format_size(block.size),
                left_out=format_size(block.left_out),
            )
            for block in found.blocks
        ]
        lines += [
            phrases(
                "instructions_ignored",
                source=_source(file.source, file.name, phrases),
                reason=phrases(f"instructions_{file.reason}"),
            )
            for file in found.ignored
        ]
        if not lines:
            return phrases("instructions_rights")
        applied = phrases("instructions_applied", lines="\n".join(lines))
        return f"{applied}\n\n{phrases('instructions_rights')}"

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

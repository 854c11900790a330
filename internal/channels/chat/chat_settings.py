"""Commands that change or show the settings, usage and pairing of a chat.

Only operators change settings, and that is declared where the commands are listed.
"""

import re

import msgspec

from internal.agent.app.access import TooManyAttempts, WrongCode
from internal.agent.app.task_options import (
    choose_network,
    find_profile,
)
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
from internal.channels.chat.answers import escape_markdown
from internal.channels.chat.chat_rules import ChatRules
from internal.channels.chat.command_context import ChatContext
from internal.channels.network_choice import parse_network_choice
from internal.i18n.catalog import MessageCatalog
from internal.i18n.chat import ChatPhrases, find_switch

_MODEL_NAME = re.compile(r"[\w.:/@+-]{1,100}")


def _source(source: InstructionSource, name: str, phrases: ChatPhrases) -> str:
    return phrases(f"instructions_of_{source}", name=name.replace("`", "'"))


async def review_plans(context: ChatContext, argument: str) -> str:
    """Turn plan review on or off. Only the owner may turn off a review that settings require."""
    phrases, actor, wanted = context.phrases, context.actor, find_switch(argument)
    settings = context.rules.chosen
    if argument:
        less: PlanReview | None = "off" if actor.principal.may("owner") else None
        settings = settings._replace(plan_review="always" if wanted == "on" else less)
        await context.gateway.chats.save_settings(actor.chat, settings)
    review = settings.plan_review or context.defaults.plan_review
    return phrases(f"plan_review_{review}", command=phrases.command("plan"))


async def set_model(context: ChatContext, argument: str) -> str:
    """Choose the model of the chat's coming tasks."""
    phrases, actor = context.phrases, context.actor
    settings = context.rules.chosen
    if argument and not _MODEL_NAME.fullmatch(argument):
        return phrases("model_how", command=phrases.command("model"))
    if argument:
        model = "" if find_switch(argument) == "default" else argument
        settings = settings._replace(model=model)
        await context.gateway.chats.save_settings(actor.chat, settings)
    if not settings.model:
        return phrases("model_default")
    return phrases("model", model=settings.model)


async def set_profile(context: ChatContext, argument: str) -> str:
    """Choose the profile of the chat's coming tasks."""
    phrases, rules = context.phrases, context.rules
    if argument:
        name = "" if find_switch(argument) == "default" else argument.strip().lower()
        if name:
            try:
                find_profile(context.defaults, name)
            except InvalidRequest as error:
                return escape_markdown(str(error))
        rules = await _choose(context, rules.chosen._replace(profile=name))
    chosen = rules.profile or context.defaults.profile
    known = "\n".join(
        f"- `{name}` {escape_markdown(profile.description)}".rstrip()
        for name, profile in sorted(context.defaults.profiles.items())
    )
    return phrases("profile_is", profile=chosen, known=known, command=phrases.command("profile"))


async def set_network(context: ChatContext, argument: str) -> str:
    """Set the network access of commands. Only the owner may exceed the configured access."""
    phrases, rules = context.phrases, context.rules
    if argument:
        try:
            chosen = _parse_network(context, argument)
        except RuleError:
            return phrases("network_how", command=phrases.command("network"))
        except InvalidRequest:
            return phrases("network_impossible")
        except Forbidden:
            return phrases("network_too_wide")
        rules = await _choose(context, rules.chosen._replace(network=chosen))
    return _describe_isolation(context, rules)


async def _choose(context: ChatContext, chosen: ChatSettings) -> ChatRules:
    """Store the settings chosen in a chat and return the resulting rules of the chat."""
    await context.gateway.chats.save_settings(context.actor.chat, chosen)
    return msgspec.structs.replace(context.rules, chosen=chosen)


def _profile_of(context: ChatContext, rules: ChatRules) -> Profile:
    name = rules.profile or context.defaults.profile
    return context.defaults.profiles.get(name, Profile())


def _policy(context: ChatContext, rules: ChatRules) -> Policy:
    return rules.policy(context.defaults, _profile_of(context, rules))


def _parse_network(context: ChatContext, argument: str) -> NetworkSetting | None:
    """Return the network setting to store, or None to use the configured value.

    Raises:
        RuleError: a name is not a valid host.
        InvalidRequest: the sandbox lets commands reach no host.
        Forbidden: the sender may not choose this much access.
    """
    if find_switch(argument) == "default":
        return None
    chosen: NetworkSetting = msgspec.convert(parse_network_choice(argument), NetworkSetting)
    rules = context.rules
    widest = msgspec.structs.replace(rules, chosen=rules.chosen._replace(network=None))
    base = _policy(context, widest)
    choose_network(context.defaults, base, chosen, context.actor.principal)
    return chosen


def describe_isolation(context: ChatContext) -> str:
    """Describe whether the commands of the chat are isolated, and their network access."""
    return _describe_isolation(context, context.rules)


def _describe_isolation(context: ChatContext, rules: ChatRules) -> str:
    phrases = context.phrases
    if not context.defaults.isolated:
        return phrases("not_isolated")
    policy = _policy(context, rules)
    kind = network_kind(policy.allow)
    hosts = f" ({', '.join(network_hosts(policy.allow))})" if kind == "hosts" else ""
    return phrases("isolated", network=f"{phrases(f'network_{kind}')}{hosts}")


def describe_mode(context: ChatContext) -> str:
    """Describe the permission mode of the tasks of the chat."""
    rules = context.rules
    mode = _profile_of(context, rules).narrow_mode(_policy(context, rules).mode)
    modes = MessageCatalog("modes", context.phrases.language)
    return context.phrases("mode_is", name=modes(f"name_{mode}"), meaning=modes(mode))


async def set_instructions(context: ChatContext, argument: str) -> str:
    """Set, remove or show the instructions to the model for this chat."""
    phrases, actor = context.phrases, context.actor
    command = phrases.command("instructions")
    settings = context.rules.chosen
    text = "" if find_switch(argument) in {"off", "default"} else argument
    size, most = len(text.encode("utf-8", "replace")), MAX_CHAT_INSTRUCTIONS_BYTES
    if size > most:
        return phrases("instructions_too_long", size=format_size(size), most=format_size(most))
    if argument:
        settings = settings._replace(instructions=text)
        await context.gateway.chats.save_settings(actor.chat, settings)
    shown = escape_hidden(settings.instructions).strip()
    own = phrases("instructions" if shown else "instructions_none", command=command, text=shown)
    return f"{own}\n\n{await _list_instructions(context, settings.instructions)}"


async def _list_instructions(context: ChatContext, text: str) -> str:
    """Return the texts that apply in a chat, with their sizes, and the files that do not."""
    phrases, workspace = context.phrases, context.defaults.workspace
    found = await context.instructions.find(
        context.actor.via, context.chat.scope, workspace=workspace, text=text
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


async def pair(context: ChatContext, code: str) -> str:
    """Use a pairing code. A code that was posted in a group becomes invalid."""
    phrases, actor = context.phrases, context.actor
    command, access = phrases.command("pair"), context.gateway.access
    if not context.chat.is_direct:
        await access.revoke_code(code, actor.principal.id, actor.via)
        return phrases("pair_in_group", command=command)
    if not code:
        return phrases("pair_how", command=command)
    name = (await context.people.with_name(actor.principal)).name
    try:
        role = await access.redeem_code(code, actor.principal.id, name, actor.via)
    except WrongCode:
        return phrases("pair_wrong")
    except TooManyAttempts:
        return phrases("pair_too_many")
    return phrases(f"paired_{role}")


async def show_usage(context: ChatContext, _argument: str) -> str:
    """Return the tokens and the cost of the chat's current session."""
    phrases = context.phrases
    found = await context.gateway.chats.get_usage(context.actor.via, context.chat.scope)
    if found is None:
        return phrases("usage_none")
    usage, cost = found.usage, found.cost
    tokens = phrases("usage", input=usage.total - usage.output_tokens, output=usage.output_tokens)
    return tokens if cost is None else f"{tokens} {phrases('usage_cost', cost=cost)}"

"""Commands that change or show the settings, usage and pairing of a chat.

Only operators change settings, and that is declared where the commands are listed.
"""

import re

import msgspec

from internal.agent.app.access import TooManyAttempts, WrongCode
from internal.agent.app.task_options import (
    TaskDefaults,
    choose_network,
    find_profile,
    profile_policy,
)
from internal.agent.domain.chats import MAX_CHAT_INSTRUCTIONS_BYTES, ChatSettings
from internal.agent.domain.errors import Forbidden, InvalidRequest
from internal.agent.domain.permissions.network import (
    NetworkSetting,
    network_hosts,
    network_kind,
    rules_of_network,
    widens_network,
)
from internal.agent.domain.permissions.policy import Policy, with_network
from internal.agent.domain.permissions.rules import RuleError
from internal.agent.domain.plans import PlanReview
from internal.agent.domain.tasks import Profile
from internal.agent.domain.text import escape_hidden, format_size
from internal.agent.ports.instructions import InstructionSource
from internal.channels.chat.answers import escape_markdown
from internal.channels.chat.command_context import ChatContext
from internal.channels.network_choice import parse_network_choice
from internal.i18n.catalog import MessageCatalog
from internal.i18n.chat import ChatPhrases, find_switch
from internal.settings.chat import ChatChannelSettings

_MODEL_NAME = re.compile(r"[\w.:/@+-]{1,100}")


def chat_profile(
    defaults: TaskDefaults, configured: ChatChannelSettings, chat_id: str, chosen: ChatSettings
) -> str:
    """Return the name of the profile for tasks of a chat: chosen there, of its group, or usual."""
    return chosen.profile or configured.group(chat_id).profile or defaults.profile


def chat_policy(
    defaults: TaskDefaults, profile: Profile, ceiling: NetworkSetting | None, chosen: ChatSettings
) -> Policy:
    """Return the permission policy for tasks of a chat.

    Args:
        defaults: the values of the settings.
        profile: that of the chat.
        ceiling: the network of its group or channel, which the profile does not exceed.
        chosen: what the people of the chat have chosen.
    """
    policy = profile_policy(defaults, profile)
    if ceiling is not None and (
        profile.network is None or widens_network(rules_of_network(ceiling), profile.network)
    ):
        policy = with_network(policy, defaults.possible_network(ceiling))
    return with_network(policy, defaults.possible_network(chosen.network))


def _source(source: InstructionSource, name: str, phrases: ChatPhrases) -> str:
    return phrases(f"instructions_of_{source}", name=name.replace("`", "'"))


async def review_plans(context: ChatContext, argument: str) -> str:
    """Turn plan review on or off. Only the owner may turn off what the settings require."""
    phrases, actor, wanted = context.phrases, context.actor, find_switch(argument)
    settings = await context.gateway.chats.get_settings(actor.chat)
    if argument:
        less: PlanReview | None = "off" if actor.principal.may("owner") else None
        settings = settings._replace(plan_review="always" if wanted == "on" else less)
        await context.gateway.chats.save_settings(actor.chat, settings)
    review = settings.plan_review or context.defaults.plan_review
    return phrases(f"plan_review_{review}", command=phrases.command("plan"))


async def set_model(context: ChatContext, argument: str) -> str:
    """Choose the model of the chat's coming tasks."""
    phrases, actor = context.phrases, context.actor
    settings = await context.gateway.chats.get_settings(actor.chat)
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
    phrases, actor, chat_id = context.phrases, context.actor, context.chat.chat_id
    settings = await context.gateway.chats.get_settings(actor.chat)
    if argument:
        name = "" if find_switch(argument) == "default" else argument.strip().lower()
        if name:
            try:
                find_profile(context.defaults, name)
            except InvalidRequest as error:
                return escape_markdown(str(error))
        settings = settings._replace(profile=name)
        await context.gateway.chats.save_settings(actor.chat, settings)
    chosen = chat_profile(context.defaults, context.settings, chat_id, settings)
    known = "\n".join(
        f"- `{name}` {escape_markdown(profile.description)}".rstrip()
        for name, profile in sorted(context.defaults.profiles.items())
    )
    return phrases("profile_is", profile=chosen, known=known, command=phrases.command("profile"))


async def set_network(context: ChatContext, argument: str) -> str:
    """Choose what commands reach. Only the owner may choose more than the settings allow."""
    phrases, actor = context.phrases, context.actor
    if argument:
        try:
            chosen = await _parse_network(context, argument)
        except RuleError:
            return phrases("network_how", command=phrases.command("network"))
        except InvalidRequest:
            return phrases("network_impossible")
        except Forbidden:
            return phrases("network_too_wide")
        settings = await context.gateway.chats.get_settings(actor.chat)
        await context.gateway.chats.save_settings(actor.chat, settings._replace(network=chosen))
    return await describe_isolation(context)


def _profile_of(context: ChatContext, chosen: ChatSettings) -> Profile:
    name = chat_profile(context.defaults, context.settings, context.chat.chat_id, chosen)
    return context.defaults.profiles.get(name, Profile())


def _policy(context: ChatContext, chosen: ChatSettings) -> Policy:
    ceiling = context.settings.network_in(context.chat.chat_id)
    profile = _profile_of(context, chosen)
    return chat_policy(context.defaults, profile, ceiling, chosen)


async def _parse_network(context: ChatContext, argument: str) -> NetworkSetting | None:
    """Return what is to be stored; None for the value of the settings.

    Raises:
        RuleError: something is not a host.
        InvalidRequest: the sandbox lets commands reach no host.
        Forbidden: the sender may not choose so much.
    """
    if find_switch(argument) == "default":
        return None
    chosen: NetworkSetting = msgspec.convert(parse_network_choice(argument), NetworkSetting)
    settings = await context.gateway.chats.get_settings(context.actor.chat)
    base = _policy(context, settings._replace(network=None))
    choose_network(context.defaults, base, chosen, context.actor.principal)
    return chosen


async def describe_isolation(context: ChatContext) -> str:
    """Return whether the commands of the chat are isolated, and what they reach."""
    phrases = context.phrases
    if not context.defaults.isolated:
        return phrases("not_isolated")
    chosen = await context.gateway.chats.get_settings(context.actor.chat)
    policy = _policy(context, chosen)
    kind = network_kind(policy.allow)
    hosts = f" ({', '.join(network_hosts(policy.allow))})" if kind == "hosts" else ""
    return phrases("isolated", network=f"{phrases(f'network_{kind}')}{hosts}")


async def describe_mode(context: ChatContext) -> str:
    """Return the permission mode of tasks of the chat, and what it allows."""
    chosen = await context.gateway.chats.get_settings(context.actor.chat)
    mode = _profile_of(context, chosen).narrow_mode(_policy(context, chosen).mode)
    modes = MessageCatalog("modes", context.phrases.language)
    return context.phrases("mode_is", name=modes(f"name_{mode}"), meaning=modes(mode))


async def set_instructions(context: ChatContext, argument: str) -> str:
    """Set, remove or show what the model is told to do in this chat."""
    phrases, actor = context.phrases, context.actor
    command = phrases.command("instructions")
    settings = await context.gateway.chats.get_settings(actor.chat)
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

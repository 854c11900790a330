"""Routes of people: what they allowed for longer, who they are, and what they did."""

import re

import msgspec

from internal.agent.domain.errors import NotFound
from internal.agent.domain.principals import AuditAction, Right
from internal.channels.web.endpoints import Call
from internal.channels.web.schemas import Given, Limit, Nothing

_NUMBER = re.compile(r"[0-9]{1,18}")  # 18 digits: what every database holds


class RuleView(msgspec.Struct, frozen=True):
    """A rule that a person wrote by answering. `place` is a session, a chat or a person's tasks."""

    number: int
    place: str
    rule: str
    principal: str
    via: str
    question_id: str
    created: str


class RulesView(msgspec.Struct, frozen=True):
    """The rules that people wrote, newest first."""

    rules: list[RuleView]


class NewPairing(Given, frozen=True):
    """A right to give away."""

    role: Right


class PairingView(msgspec.Struct, frozen=True):
    """A code that gives a right to whoever says `/pair CODE` first, until it expires (RFC 3339)."""

    code: str
    expires: str


class PersonView(msgspec.Struct, frozen=True):
    """A person who was given a right."""

    principal: str
    name: str
    role: Right
    via: str
    created: str


class PeopleView(msgspec.Struct, frozen=True):
    """Who was given rights besides those of the settings, oldest first."""

    people: list[PersonView]


class DeedView(msgspec.Struct, frozen=True):
    """Who did what to which thing, through what."""

    at: str
    principal: str
    via: str
    action: AuditAction
    target: str
    detail: str


class AuditView(msgspec.Struct, frozen=True):
    """What people did, newest first."""

    deeds: list[DeedView]


class AuditQuery(Given, frozen=True):
    """How much of the audit."""

    limit: Limit = 50


async def list_rules(call: Call[Nothing, Nothing]) -> RulesView:
    """Return the rules that people wrote by answering."""
    rules = await call.door.gateway.queries.rules(call.principal)
    return RulesView([RuleView(*rule) for rule in rules])


async def remove_rule(call: Call[Nothing, Nothing]) -> None:
    """Delete a rule; the calls that it allowed ask again."""
    number = call.path["number"]
    if _NUMBER.fullmatch(number) is None:
        raise NotFound(f"There is no rule {number[:80]}.")
    await call.door.gateway.remove_rule(int(number), call.principal, call.channel)


async def offer_pairing(call: Call[Nothing, NewPairing]) -> PairingView:
    """Make a code that gives a person of a channel a right, once."""
    offered = await call.door.gateway.access.offer(call.body.role, call.principal, call.channel)
    return PairingView(offered.code, offered.expires)


async def list_people(call: Call[Nothing, Nothing]) -> PeopleView:
    """Return who was given rights besides those of the settings."""
    people = await call.door.gateway.queries.people(call.principal)
    return PeopleView([PersonView(*person) for person in people])


async def remove_person(call: Call[Nothing, Nothing]) -> None:
    """Take a person's right away; it holds from their next word or click."""
    await call.door.gateway.access.remove(call.path["principal"], call.principal, call.channel)


async def list_deeds(call: Call[AuditQuery, Nothing]) -> AuditView:
    """Return who did what; for the owner."""
    deeds = await call.door.gateway.queries.deeds(call.principal, limit=call.query.limit)
    return AuditView([DeedView(*deed) for deed in deeds])

"""Routes for permission rules, people, pairings and the audit log."""

import re

import msgspec

from internal.agent.domain.errors import NotFound
from internal.agent.domain.principals import AuditAction, Right
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.schemas import EmptyRequest, Limit, RequestModel

_NUMBER = re.compile(r"[0-9]{1,18}")  # the range of a 64-bit integer


class RuleView(msgspec.Struct, frozen=True):
    """A permission rule that was granted in an answer. `place` is its scope."""

    number: int
    place: str
    rule: str
    principal: str
    via: str
    question_id: str
    created: str


class RulesView(msgspec.Struct, frozen=True):
    """Granted permission rules, newest first."""

    rules: list[RuleView]


class CreatePairingRequest(RequestModel, frozen=True):
    """A role to grant."""

    role: Right


class PairingView(msgspec.Struct, frozen=True):
    """A code that grants a role to the first user of `/pair CODE`. `expires` is RFC 3339."""

    code: str
    expires: str


class PersonView(msgspec.Struct, frozen=True):
    """A person with a granted role."""

    principal: str
    name: str
    role: Right
    via: str
    created: str


class PeopleView(msgspec.Struct, frozen=True):
    """People with roles granted by pairing, oldest first."""

    people: list[PersonView]


class AuditEntryView(msgspec.Struct, frozen=True):
    """An entry of the audit log."""

    at: str
    principal: str
    via: str
    action: AuditAction
    target: str
    detail: str


class AuditView(msgspec.Struct, frozen=True):
    """Entries of the audit log, newest first."""

    deeds: list[AuditEntryView]


class AuditQuery(RequestModel, frozen=True):
    """The number of entries to return."""

    limit: Limit = 50


async def list_rules(request: ApiRequest[EmptyRequest, EmptyRequest]) -> RulesView:
    """List the permission rules that were granted in answers."""
    rules = await request.services.gateway.queries.rules(request.principal)
    return RulesView([RuleView(*rule) for rule in rules])


async def remove_rule(request: ApiRequest[EmptyRequest, EmptyRequest]) -> None:
    """Delete a permission rule. The calls that it allowed need approval again."""
    number = request.path["number"]
    if _NUMBER.fullmatch(number) is None:
        raise NotFound(f"Rule {number[:80]} does not exist.")
    await request.services.gateway.remove_rule(int(number), request.principal, request.channel)


async def create_pairing(request: ApiRequest[EmptyRequest, CreatePairingRequest]) -> PairingView:
    """Create a code that grants a role to one person of a chat channel."""
    offered = await request.services.gateway.access.create_code(
        request.body.role, request.principal, request.channel
    )
    return PairingView(offered.code, offered.expires)


async def list_people(request: ApiRequest[EmptyRequest, EmptyRequest]) -> PeopleView:
    """List the people with roles granted by pairing."""
    people = await request.services.gateway.queries.people(request.principal)
    return PeopleView([PersonView(*person) for person in people])


async def remove_person(request: ApiRequest[EmptyRequest, EmptyRequest]) -> None:
    """Revoke a person's role, with effect from their next message or action."""
    await request.services.gateway.access.remove_role(
        request.path["principal"], request.principal, request.channel
    )


async def list_audit_entries(request: ApiRequest[AuditQuery, EmptyRequest]) -> AuditView:
    """List the entries of the audit log. Requires the owner role."""
    deeds = await request.services.gateway.queries.audit_entries(
        request.principal, limit=request.query.limit
    )
    return AuditView([AuditEntryView(*deed) for deed in deeds])

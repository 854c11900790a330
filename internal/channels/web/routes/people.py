"""Routes for permission rules, people, pairings and the audit log."""

import msgspec

from internal.agent.app.access import PairingCode
from internal.agent.domain.errors import NotFound
from internal.agent.domain.permissions.rules import PermissionRule
from internal.agent.domain.principals import AuditEntry, Right, RoleAssignment
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.schemas import EmptyRequest, Limit, RequestModel


class RulesView(msgspec.Struct, frozen=True):
    """Granted permission rules, newest first."""

    rules: list[PermissionRule]


class CreatePairingRequest(RequestModel, frozen=True):
    """A role to grant."""

    role: Right


class PeopleView(msgspec.Struct, frozen=True):
    """People with roles granted by pairing, oldest first."""

    people: list[RoleAssignment]


class AuditView(msgspec.Struct, frozen=True):
    """Entries of the audit log, newest first."""

    entries: list[AuditEntry]


class AuditQuery(RequestModel, frozen=True):
    """The number of entries to return."""

    limit: Limit = 50


async def list_rules(request: ApiRequest[EmptyRequest, EmptyRequest]) -> RulesView:
    """List the permission rules that were granted in answers."""
    return RulesView(await request.services.gateway.queries.rules(request.principal))


async def remove_rule(request: ApiRequest[EmptyRequest, EmptyRequest]) -> None:
    """Delete a permission rule. The calls that it allowed need approval again."""
    if request.number is None:
        raise NotFound(
            f"Rule {request.path['number'][:80]} does not exist.",
            reason_code="no_rule",
            rule=request.path["number"][:80],
        )
    gateway = request.services.gateway
    await gateway.remove_rule(request.number, request.principal, request.channel)


async def create_pairing(request: ApiRequest[EmptyRequest, CreatePairingRequest]) -> PairingCode:
    """Create a code that grants a role to one person of a chat channel."""
    return await request.services.gateway.access.create_code(
        request.body.role, request.principal, request.channel
    )


async def list_people(request: ApiRequest[EmptyRequest, EmptyRequest]) -> PeopleView:
    """List the people with roles granted by pairing."""
    return PeopleView(await request.services.gateway.queries.people(request.principal))


async def remove_person(request: ApiRequest[EmptyRequest, EmptyRequest]) -> None:
    """Revoke a person's role, with effect from their next message or action."""
    await request.services.gateway.access.remove_role(
        request.path["principal"], request.principal, request.channel
    )


async def list_audit_entries(request: ApiRequest[AuditQuery, EmptyRequest]) -> AuditView:
    """List the entries of the audit log. Requires the owner role."""
    queries, limit = request.services.gateway.queries, request.query.limit
    return AuditView(await queries.audit_entries(request.principal, limit=limit))

"""Permission rules that people added, roles they were given, and the audit log."""

from msgspec.structs import astuple

from internal.agent.domain.permissions.rules import PermissionRule
from internal.agent.domain.principals import AuditAction, AuditEntry, Right, RoleAssignment
from internal.agent.store.database import Read, Statement, Write
from internal.agent.store.encoding import storable


class PermissionRuleStore:
    """Permission rules that people added."""

    def add(self, rule: PermissionRule, /) -> Write[None]:
        """Insert a rule and number it. Nothing changes when its scope has the same rule."""
        yield Statement(
            "insert_permission_rule", (rule.scope, storable(rule.rule), *astuple(rule)[3:])
        )

    def list_for(self, session_id: str, scope: str, /) -> Read[list[str]]:
        """Return the rules of a session and of the scope that its tasks come from."""
        rows = yield Statement("permission_rules_of", (session_id, scope))
        return [rule for (rule,) in rows]

    def list_page(self, limit: int, /) -> Read[list[PermissionRule]]:
        """Return rules, newest first."""
        rows = yield Statement("permission_rules_page", (limit,))
        return [PermissionRule(*row) for row in rows]

    def remove(self, number: int, /) -> Write[PermissionRule | None]:
        """Delete a rule and return it. None when there is no such rule."""
        rows = yield Statement("delete_permission_rule", (number,))
        return PermissionRule(*rows[0]) if rows else None


class RoleStore:
    """Roles of people, and the pairing codes that give one."""

    def add_pairing_code(
        self, code_hash: str, role: Right, *, now: str, expires: str
    ) -> Write[None]:
        """Store a code that gives a role once, and delete expired codes."""
        yield Statement("delete_expired_pairing_codes", (now,))
        yield Statement("insert_pairing_code", (code_hash, role, now, expires))

    def redeem_pairing_code(self, code_hash: str, now: str, /) -> Write[Right | None]:
        """Delete a code and return its role. None when it is unknown, used or expired."""
        rows = yield Statement("redeem_pairing_code", (code_hash, now))
        return rows[0][0] if rows else None

    def assign(self, assignment: RoleAssignment, /) -> Write[None]:
        """Insert or replace the role of a person."""
        principal, name, *rest = astuple(assignment)
        yield Statement("upsert_role_assignment", (principal, storable(name), *rest))

    def get(self, principal: str, /) -> Read[RoleAssignment | None]:
        """Return the role of a person."""
        rows = yield Statement("role_assignment", (principal,))
        return RoleAssignment(*rows[0]) if rows else None

    def list_all(self) -> Read[list[RoleAssignment]]:
        """Return all roles, oldest first."""
        rows = yield Statement("role_assignments", ())
        return [RoleAssignment(*row) for row in rows]

    def remove(self, principal: str, /) -> Write[bool]:
        """Delete the role of a person. False when there is none."""
        rows = yield Statement("delete_role_assignment", (principal,))
        return bool(rows)


class AuditStore:
    """The audit log. Only retention deletes its entries, according to the settings."""

    def add(self, entry: AuditEntry, /) -> Write[None]:
        """Append an entry."""
        yield Statement("insert_audit_entry", (*astuple(entry)[:5], storable(entry.detail)))

    def count(self, principal: str | None, action: AuditAction, since: str, /) -> Read[int]:
        """Count the entries of an action since a timestamp; `principal` None counts all."""
        if principal is None:
            rows = yield Statement("count_audit_entries", (action, since))
        else:
            rows = yield Statement("count_audit_entries_of_principal", (principal, action, since))
        return int(rows[0][0])

    def list_page(self, limit: int, /) -> Read[list[AuditEntry]]:
        """Return entries, newest first."""
        rows = yield Statement("audit_entries_page", (limit,))
        return [AuditEntry(*row) for row in rows]

"""Rules that people wrote, their rights, and their deeds, in tables."""

from typing import NamedTuple

from internal.agent.domain.principals import AuditAction, Right
from internal.agent.store.database import Read, Statement, Write
from internal.agent.store.encoding import plain


class PermissionRule(NamedTuple):
    """A rule that a person wrote by answering: for a session, a chat or a principal's tasks."""

    number: int
    scope: str
    rule: str
    principal: str
    via: str
    question_id: str
    created: str


class RoleAssignment(NamedTuple):
    """A person of a channel who was given a right: `role` talk, operate or owner."""

    principal: str
    name: str
    role: Right
    via: str
    created: str


class AuditEntry(NamedTuple):
    """Who did what to which thing, through what; `at` is RFC 3339."""

    at: str
    principal: str
    via: str
    action: AuditAction
    target: str
    detail: str = ""


class PermissionRuleStore:
    """Fills `Grants`."""

    def add(self, rule: PermissionRule, /) -> Write[None]:
        """Store a rule for its place (its number is given here); one that is there stays."""
        yield Statement("write_rule", (rule.scope, plain(rule.rule), *rule[3:]))

    def list_for(self, session_place: str, own_place: str, /) -> Read[list[str]]:
        """Return the rules that hold in either of these places."""
        rows = yield Statement("rules_of", (session_place, own_place))
        return [rule for (rule,) in rows]

    def list_page(self, limit: int, /) -> Read[list[PermissionRule]]:
        """Return rules, newest first."""
        rows = yield Statement("rules_page", (limit,))
        return [PermissionRule(*row) for row in rows]

    def remove(self, number: int, /) -> Write[PermissionRule | None]:
        """Delete a rule and return it; None when there is none of that number."""
        rows = yield Statement("remove_rule", (number,))
        return PermissionRule(*rows[0]) if rows else None


class RoleStore:
    """Fills `People`."""

    def add_pairing_code(
        self, code_hash: str, role: Right, now: str, expires: str, /
    ) -> Write[None]:
        """Store a code that gives a right once; what has expired is deleted."""
        yield Statement("drop_codes", (now,))
        yield Statement("insert_code", (code_hash, role, now, expires))

    def redeem_pairing_code(self, code_hash: str, now: str, /) -> Write[Right | None]:
        """Use a code up; None when it was never made, was used, or has expired."""
        rows = yield Statement("take_code", (code_hash, now))
        return rows[0][0] if rows else None

    def assign(self, person: RoleAssignment, /) -> Write[None]:
        """Store a person's right in place of an older one."""
        yield Statement("put_person", (person.principal, plain(person.name), *person[2:]))

    def get(self, principal: str, /) -> Read[RoleAssignment | None]:
        """Return what a person was given."""
        rows = yield Statement("person", (principal,))
        return RoleAssignment(*rows[0]) if rows else None

    def list_all(self) -> Read[list[RoleAssignment]]:
        """Return everybody, oldest first."""
        rows = yield Statement("all_people", ())
        return [RoleAssignment(*row) for row in rows]

    def remove(self, principal: str, /) -> Write[bool]:
        """Take a person's right away; False when there was none."""
        rows = yield Statement("remove_person", (principal,))
        return bool(rows)


class AuditStore:
    """Fills `Audit`."""

    def add(self, deed: AuditEntry, /) -> Write[None]:
        """Note a deed."""
        yield Statement("note_deed", (*deed[:5], plain(deed.detail)))

    def count(self, principal: str | None, action: AuditAction, since: str, /) -> Read[int]:
        """Return how many such deeds there were since an instant; None: of anybody."""
        if principal is None:
            rows = yield Statement("count_deeds", (action, since))
        else:
            rows = yield Statement("count_deeds_of", (principal, action, since))
        return int(rows[0][0])

    def list_page(self, limit: int, /) -> Read[list[AuditEntry]]:
        """Return deeds, newest first."""
        rows = yield Statement("deeds_page", (limit,))
        return [AuditEntry(*row) for row in rows]

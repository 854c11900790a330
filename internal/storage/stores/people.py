"""Rules that people wrote, their rights, and their deeds, in tables."""

from internal.agent.domain.principals import Right
from internal.agent.ports.database import Read, Statement, Write
from internal.agent.ports.people import AuditAction, Deed, KnownPerson, WrittenRule
from internal.storage.stores.text import plain


class GrantStore:
    """Fills `Grants`."""

    def add(self, rule: WrittenRule, /) -> Write[None]:
        """Store a rule for its place (its number is given here); one that is there stays."""
        yield Statement("write_rule", (rule.place, plain(rule.rule), *rule[3:]))

    def of(self, session_place: str, own_place: str, /) -> Read[list[str]]:
        """Return the rules that hold in either of these places."""
        rows = yield Statement("rules_of", (session_place, own_place))
        return [rule for (rule,) in rows]

    def page(self, limit: int, /) -> Read[list[WrittenRule]]:
        """Return rules, newest first."""
        rows = yield Statement("rules_page", (limit,))
        return [WrittenRule(*row) for row in rows]

    def remove(self, number: int, /) -> Write[WrittenRule | None]:
        """Delete a rule and return it; None when there is none of that number."""
        rows = yield Statement("remove_rule", (number,))
        return WrittenRule(*rows[0]) if rows else None


class PeopleStore:
    """Fills `People`."""

    def add_code(self, code_hash: str, role: Right, now: str, expires: str, /) -> Write[None]:
        """Store a code that gives a right once; what has expired is deleted."""
        yield Statement("drop_codes", (now,))
        yield Statement("insert_code", (code_hash, role, now, expires))

    def take_code(self, code_hash: str, now: str, /) -> Write[Right | None]:
        """Use a code up; None when it was never made, was used, or has expired."""
        rows = yield Statement("take_code", (code_hash, now))
        return rows[0][0] if rows else None

    def add(self, person: KnownPerson, /) -> Write[None]:
        """Store a person's right in place of an older one."""
        yield Statement("put_person", (person.principal, plain(person.name), *person[2:]))

    def get(self, principal: str, /) -> Read[KnownPerson | None]:
        """Return what a person was given."""
        rows = yield Statement("person", (principal,))
        return KnownPerson(*rows[0]) if rows else None

    def all(self) -> Read[list[KnownPerson]]:
        """Return everybody, oldest first."""
        rows = yield Statement("all_people", ())
        return [KnownPerson(*row) for row in rows]

    def remove(self, principal: str, /) -> Write[bool]:
        """Take a person's right away; False when there was none."""
        rows = yield Statement("remove_person", (principal,))
        return bool(rows)


class AuditStore:
    """Fills `Audit`."""

    def add(self, deed: Deed, /) -> Write[None]:
        """Note a deed."""
        yield Statement("note_deed", (*deed[:5], plain(deed.detail)))

    def count(self, principal: str | None, action: AuditAction, since: str, /) -> Read[int]:
        """Return how many such deeds there were since an instant; None: of anybody."""
        if principal is None:
            rows = yield Statement("count_deeds", (action, since))
        else:
            rows = yield Statement("count_deeds_of", (principal, action, since))
        return int(rows[0][0])

    def page(self, limit: int, /) -> Read[list[Deed]]:
        """Return deeds, newest first."""
        rows = yield Statement("deeds_page", (limit,))
        return [Deed(*row) for row in rows]

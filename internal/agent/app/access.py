"""Access: roles granted by pairing codes, and permission rules that people granted."""

import hashlib
import logging
import secrets
from datetime import timedelta
from functools import partial

import msgspec

from internal.agent.domain.errors import Forbidden, NotFound
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.permissions.rules import PermissionRule, RuleError, split_rule
from internal.agent.domain.principals import AuditEntry, Principal, Right, RoleAssignment
from internal.agent.domain.questions import Answer, QuestionRecord
from internal.agent.domain.tasks import Channel, Task
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database, Read, Write
from internal.agent.store.stores import Stores

CODE_LENGTH = 8
CODE_LIFETIME = timedelta(minutes=10)
MAX_WRONG_CODES, MAX_WRONG_CODES_OVERALL = 5, 20
"""Wrong codes that one person, and all together, may enter within the lifetime of a code."""

_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # no characters that look alike
_RIGHTS: dict[Right, frozenset[Right]] = {
    "talk": frozenset({"talk"}),
    "operate": frozenset({"talk", "operate"}),
    "owner": frozenset({"talk", "operate", "owner"}),
}
"""The rights of each role, smallest role first."""


def granted_rights(stores: Stores, principal_id: str) -> Read[frozenset[Right]]:
    """Return the rights of the role that was granted to a person."""
    known = yield from stores.roles.get(principal_id)
    return frozenset() if known is None else _RIGHTS[known.role]


class WrongCode(Forbidden):
    """The code is unknown, used or expired."""


class TooManyAttempts(Forbidden):
    """Too many wrong codes were entered; the code was not checked."""


class PairingCode(msgspec.Struct, frozen=True):
    """A code that grants a role once, until `expires` (RFC 3339)."""

    code: str
    expires: str


class Access:
    """Grants and removes roles. Every change is added to the audit log."""

    def __init__(self, database: Database, stores: Stores, clock: Clock) -> None:
        self._database, self._stores, self._clock = database, stores, clock

    async def create_code(self, role: Right, principal: Principal, via: Channel) -> PairingCode:
        """Create a code that grants the role to the first person who enters it.

        Only the hash of the code is stored.

        Raises:
            Forbidden: the principal is not the owner.
        """
        principal.require_owner("grant and remove roles")
        code = "".join(secrets.choice(_ALPHABET) for _ in range(CODE_LENGTH))
        now = self._clock.now()
        pairing = PairingCode(code, rfc3339(now + CODE_LIFETIME))
        entry = AuditEntry(rfc3339(now), principal.id, via, "pairing.offered", role, "")

        def work() -> Write[None]:
            yield from self._stores.roles.add_pairing_code(
                _hash(code), role, now=entry.at, expires=pairing.expires
            )
            yield from self._stores.audit.add(entry)

        await self._database.write(work)
        return pairing

    async def redeem_code(self, code: str, principal_id: str, name: str, via: Channel) -> Right:
        """Redeem a code and return the role of the person, which never becomes smaller.

        Raises:
            WrongCode: the code is unknown, used or expired. The attempt is counted.
            TooManyAttempts: this person, or all together, entered too many wrong codes.
        """
        now = self._clock.now()
        at, since = rfc3339(now), rfc3339(now - CODE_LIFETIME)
        stores = self._stores

        def work() -> Write[Right | None]:
            for who, most in ((principal_id, MAX_WRONG_CODES), (None, MAX_WRONG_CODES_OVERALL)):
                if (yield from stores.audit.count(who, "pairing.refused", since)) >= most:
                    raise TooManyAttempts(
                        "Too many wrong codes were entered. Wait ten minutes.",
                        reason_code="too_many_codes",
                        minutes=10,
                    )
            granted = yield from stores.roles.redeem_pairing_code(_hash(code), at)
            if granted is None:
                # not raised here: an exception would roll back the count of this attempt
                entry = AuditEntry(at, principal_id, via, "pairing.refused", principal_id, "")
                yield from stores.audit.add(entry)
                return None
            known = yield from stores.roles.get(principal_id)
            role = max(
                granted, known.role if known else granted, key=lambda each: len(_RIGHTS[each])
            )
            yield from stores.roles.assign(RoleAssignment(principal_id, name, role, via, at))
            yield from stores.audit.add(
                AuditEntry(at, principal_id, via, "pairing.redeemed", principal_id, granted)
            )
            return role

        role = await self._database.write(work)
        if role is None:
            raise WrongCode(
                "This code is wrong, already used or expired.", reason_code="wrong_pairing_code"
            )
        return role

    async def revoke_code(self, code: str, principal_id: str, via: Channel) -> None:
        """Revoke a code that was entered where others can read it."""
        at = rfc3339(self._clock.now())
        entry = AuditEntry(
            at, principal_id, via, "pairing.refused", principal_id, "shown to others"
        )

        def work() -> Write[None]:
            if (yield from self._stores.roles.redeem_pairing_code(_hash(code), at)) is not None:
                yield from self._stores.audit.add(entry)

        await self._database.write(work)

    async def get_rights(self, principal_id: str) -> frozenset[Right]:
        """Return the rights of the role that was granted to a person."""
        return await self._database.read(partial(granted_rights, self._stores, principal_id))

    async def get_name(self, principal_id: str) -> str:
        """Return the name with which a person was paired, "" without a role."""
        known = await self._database.read(partial(self._stores.roles.get, principal_id))
        return "" if known is None else known.name

    async def remove_role(self, principal_id: str, principal: Principal, via: Channel) -> None:
        """Remove the role of a person; takes effect with their next message or click.

        Raises:
            Forbidden: the principal is not the owner.
            NotFound: the person has no role.
        """
        principal.require_owner("grant and remove roles")
        entry = AuditEntry(
            rfc3339(self._clock.now()), principal.id, via, "person.removed", principal_id, ""
        )

        def work() -> Write[None]:
            if not (yield from self._stores.roles.remove(principal_id)):
                raise NotFound(
                    f"{principal_id[:80]} has no role.",
                    reason_code="no_role",
                    person=principal_id[:80],
                )
            yield from self._stores.audit.add(entry)

        await self._database.write(work)


def _hash(code: str) -> str:
    """Return the hash of a code, ignoring case, spaces and dashes."""
    return hashlib.sha256("".join(code.upper().replace("-", "").split()).encode()).hexdigest()


logger = logging.getLogger(__name__)


def add_rules(stores: Stores, question: QuestionRecord, answer: Answer) -> Write[None]:
    """Store the rules of an answer, for its session or for all tasks from the same place."""
    if answer.grant == "once":
        return
    scope = question.session_id if answer.grant == "session" else question.rule_scope
    for rule in answer.rules:
        yield from add_rule(
            stores,
            PermissionRule(0, scope, rule, answer.by, answer.via, answer.question_id, answer.at),
        )


def add_rule(stores: Stores, rule: PermissionRule) -> Write[None]:
    """Store a rule that a person granted, and add an audit entry."""
    yield from stores.permission_rules.add(rule)
    entry = AuditEntry(
        rule.created, rule.principal, rule.via, "rule.written", rule.scope, rule.rule
    )
    yield from stores.audit.add(entry)


def load_rules(stores: Stores, task: Task) -> Read[list[str]]:
    """Return the allow rules for the task's session and for the place it was submitted from.

    Stored rules that cannot be parsed are skipped and logged.
    """
    rules = yield from stores.permission_rules.list_for(task.session_id, task.origin.rule_scope)
    return [rule for rule in rules if _is_valid(rule)]


def remove_rule(
    stores: Stores, number: int, principal: Principal, *, via: Channel, now: str
) -> Write[PermissionRule]:
    """Remove a rule and add an audit entry.

    Raises:
        NotFound: the rule does not exist or the principal is not the owner.
    """
    rule = (yield from stores.permission_rules.remove(number)) if principal.may("owner") else None
    if rule is None:
        raise NotFound(f"There is no rule {number}.", reason_code="no_rule", rule=number)
    entry = AuditEntry(now, principal.id, via, "rule.removed", rule.scope, rule.rule)
    yield from stores.audit.add(entry)
    return rule


def _is_valid(rule: str) -> bool:
    try:
        split_rule(rule)
    except RuleError as error:
        logger.warning("stored rule skipped", extra={"reason": str(error)})
        return False
    return True
